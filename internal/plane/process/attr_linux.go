package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// attributes returns the attributes of a child: a process group of its own, and the signal at the death of the parent.
func attributes(deathSignal syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: deathSignal}
}

// ParentIsGo reports whether this process was started by the go command: go run, go tool or go
// test.
func ParentIsGo() bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	return err == nil && filepath.Base(exe) == "go"
}

// ParentArgs returns the command line of the parent process, or nil if it cannot be read.
func ParentArgs() []string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/cmdline")
	if err != nil || len(data) == 0 {
		return nil
	}
	var args []string
	start := 0
	for i, b := range data {
		if b == 0 {
			args = append(args, string(data[start:i]))
			start = i + 1
		}
	}
	return args
}

// EndWithGo makes this process receive SIGTERM when the go command that runs it dies. `go run` does not forward
// signals, and a child of `go run` does not notice that `go run` was killed. EndWithGo does nothing for a process with
// another parent, such as a shell, because the process may be meant to outlive that parent.
func EndWithGo() {
	if !ParentIsGo() {
		return
	}
	parent := os.Getppid()
	// An error does not matter much: then only kill -9 of the go command leaves this process
	// behind. The setting belongs to the calling thread. Go ends a thread only with a goroutine
	// that is locked to it.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0)
	if os.Getppid() != parent { // the go command died before the setting was made
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}
}
