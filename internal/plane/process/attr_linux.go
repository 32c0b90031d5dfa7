package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

func attributes(orphaned syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphaned}
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

// EndWithGo makes this process receive SIGTERM when the go command that runs it dies. `go run`
// does not forward signals, and its child does not notice when it is killed. A process with any
// other parent (a shell, an init) is left alone: it may be meant to outlive its parent.
func EndWithGo() {
	if !ParentIsGo() {
		return
	}
	parent := os.Getppid()
	// An error does not matter much: then only kill -9 of the go command leaves this process
	// behind. The setting belongs to the calling thread. Go ends a thread only with a goroutine
	// that is locked to it.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0)
	if os.Getppid() != parent { // it died before the setting was made
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}
}
