//go:build unix && !linux

package process

import "syscall"

// attributes returns the attributes of a child: a process group of its own. This system has no signal at the death of
// the parent.
func attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// ParentIsGo reports whether this process was started by the go command. On this system it always
// returns false.
func ParentIsGo() bool { return false }

// ParentArgs returns the command line of the parent process. On this system it always returns
// nil.
func ParentArgs() []string { return nil }

// EndWithGo makes this process end with the go command that runs it. On this system it does
// nothing.
func EndWithGo() {}
