package integration

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/plane/process"
)

// program is the control plane's binary, run by hand, in a home of its own. The home holds all that the program
// could leave behind.
type program struct {
	*process.Process
	cmd   *exec.Cmd
	stdin *os.File // our end of its standard input

	mu             sync.Mutex
	stdout, stderr strings.Builder
}

// newHome returns a folder for a program, and its folder for temporary files. The paths are short, because the path
// of a socket has a bound.
func newHome(t *testing.T) (home, tmp string) {
	t.Helper()
	home, err := os.MkdirTemp("", "pt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	tmp = filepath.Join(home, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	return home, tmp
}

// files returns all files and folders below a home, except its temporary folder itself.
func files(t *testing.T, home string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
		if path != home && path != filepath.Join(home, "tmp") {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// environment returns the environment of a program with another home.
func environment(home string, more ...string) []string {
	return append(os.Environ(), append([]string{
		"HOME=" + home, "TMPDIR=" + filepath.Join(home, "tmp"), "XDG_CACHE_HOME=" + filepath.Join(home, ".cache"), "KUBECONFIG=",
	}, more...)...)
}

// start starts a program, which is killed at the end of t if it still runs.
func start(t *testing.T, home string, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{cmd: cmd}
	stdin, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = ours
	cmd.Dir, cmd.Stdin = home, stdin
	if cmd.Env == nil {
		cmd.Env = environment(home)
	}
	cmd.Stdout, cmd.Stderr = writer{p, &p.stdout}, writer{p, &p.stderr}
	p.Process, err = process.Start(cmd, syscall.SIGKILL)
	_ = stdin.Close()
	if err != nil {
		_ = ours.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.Done()
		_ = ours.Close()
		if t.Failed() {
			out, errs := p.output()
			t.Logf("%s printed:\n%s\nand on standard error:\n%s", strings.Join(cmd.Args, " "), out, errs)
		}
	})
	return p
}

// up starts the command up.
func up(t *testing.T, home string, args ...string) *program {
	t.Helper()
	return start(t, home, exec.Command(findBinary(t), append([]string{"up"}, args...)...))
}

// writer writes under the program's lock.
type writer struct {
	program *program
	to      *strings.Builder
}

func (w writer) Write(text []byte) (int, error) {
	w.program.mu.Lock()
	defer w.program.mu.Unlock()
	return w.to.Write(text)
}

func (p *program) output() (stdout, stderr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String(), p.stderr.String()
}

// waitForLine waits for a line on standard output with that in it.
func (p *program) waitForLine(t *testing.T, part string) string {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for ended := false; ; {
		out, errs := p.output()
		for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
			if strings.Contains(lines.Text(), part) {
				return lines.Text()
			}
		}
		if ended || time.Now().After(deadline) {
			t.Fatalf("no line with %q; ended: %t (%v); it printed:\n%s\n%s", part, ended, p.Err(), out, errs)
		}
		select {
		case <-p.Done():
			ended = true
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// waitForFile waits until a file is there whose content is not the old one, and returns it.
func (p *program) waitForFile(t *testing.T, path, old string) string {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		content, err := os.ReadFile(path)
		if err == nil && string(content) != old {
			return string(content)
		}
		select {
		case <-p.Done():
			t.Fatalf("it ended (%v) without %s", p.Err(), path)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s: %v", path, err)
		}
	}
}

func (p *program) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.cmd.Process.Pid, signal); err != nil {
		t.Fatal(err)
	}
}

// status waits for the end, and returns the exit status, or -1 if a signal ended the process.
func (p *program) status(t *testing.T) int {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// listedByNobody reports whether a user who owns nothing can list a file or folder. Only root
// can ask.
func listedByNobody(t *testing.T, path string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ls", path)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "ermission denied") {
		t.Fatalf("ls as another user: %v: %s", err, out)
	}
	return err == nil
}
