package process

import "syscall"

// attributes puts a child into a process group of its own, so that the Ctrl-C of a
// terminal does not reach it, and has the kernel kill it when its parent is gone. The
// lifeline does that too, but cannot wake a child that is paused.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
