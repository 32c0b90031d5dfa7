//go:build linux

// Package sandbox makes the namespaces in which a real node runs. The processes, the mounts, the
// links and the packet filter rules of the node exist only in these namespaces: the kernel removes
// all of them when the first process of the namespaces ends, however it ends.
package sandbox

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"github.com/yare-go/yare/realnode/internal/layout"
)

// Command is the name of the command that is the first process of the namespaces.
const Command = "init"

// Sandbox is the namespaces of a node, with all their processes. It ends with its first process.
type Sandbox struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts the command of the first process. The command starts `child --slot NUMBER`, and ends with that
// process. The kernel kills all of them when this process ends.
func Start(l layout.Layout, child string, stdin io.Reader, stdout, stderr *os.File) (*Sandbox, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(executable, Command, "--slot", strconv.Itoa(l.Slot), child)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,
		Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	s := &Sandbox{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the thread that started the process ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		s.err = cmd.Wait()
		close(s.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf(
			"make the namespaces of the node: %w: root in a container may not do that unless the container is privileged", err)
	}
	return s, nil
}

// PID returns the process ID of the first process.
func (s *Sandbox) PID() int { return s.cmd.Process.Pid }

// Done returns a channel that is closed when no process is left in the namespaces.
func (s *Sandbox) Done() <-chan struct{} { return s.done }

// Err returns how the first process ended. It must not be called before Done is closed.
func (s *Sandbox) Err() error { return s.err }

// Kill ends all processes in the namespaces and waits for their end.
func (s *Sandbox) Kill() {
	_ = s.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-s.done
}

// Main runs as the first process of the namespaces, and returns the exit status of the process.
func Main(args []string) int {
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	slot := flags.Int("slot", 0, "`number` of the node's slot")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		return 2
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "realnode: init is only for `realnode up`, which makes the namespaces of the node")
		return 2
	}
	status, err := run(layout.Layout{Slot: *slot}, flags.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "realnode:", err)
		return 1
	}
	return status
}

func run(l layout.Layout, child string) (status int, err error) {
	if err := isolateMounts(l); err != nil {
		return 0, err
	}
	if err := syscall.Sethostname([]byte(layout.NodeName)); err != nil {
		return 0, fmt.Errorf("name the node: %w", err)
	}
	process, err := os.StartProcess("/proc/self/exe", []string{"realnode", child, "--slot", strconv.Itoa(l.Slot)},
		&os.ProcAttr{Dir: "/", Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, fmt.Errorf("start the node: %w", err)
	}
	return reap(process.Pid)
}

// reap waits for all processes whose parent has ended, as the first process of a system does,
// until the process pid has ended. It returns the status of that process.
func reap(pid int) (int, error) {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, fmt.Errorf("wait for the node: %w", err)
		case ended == pid && status.Exited():
			return status.ExitStatus(), nil
		case ended == pid:
			return 1, nil
		}
	}
}
