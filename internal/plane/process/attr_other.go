//go:build unix && !linux

package process

import "syscall"

func attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// ParentIsGo tells whether this process was started by the go command. This system does
// not tell.
func ParentIsGo() bool { return false }

// ParentArgs is the command line of the parent process, nil where it cannot be read.
func ParentArgs() []string { return nil }

// EndWithGo makes this process end with the go command that runs it, where the system can
// do that. This one cannot.
func EndWithGo() {}
