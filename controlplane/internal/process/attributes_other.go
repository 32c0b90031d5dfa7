//go:build unix && !linux

package process

import "syscall"

// attributes puts a child into a process group of its own, so that the Ctrl-C of a
// terminal does not reach it. The lifeline ends it when its parent is gone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
