package process

import "syscall"

// attributes puts a child into a process group of its own, so that the Ctrl-C of a
// terminal does not reach it, and has the kernel kill it when its parent is gone. The
// lifeline ends the child too, but cannot wake a paused child.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
