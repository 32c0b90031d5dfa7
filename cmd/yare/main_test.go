package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/fakeplane"
)

// The test program is yare when this variable is set, and a fake control plane when it is
// called by that name: tests see what a user of the command line sees.
const asYare = "YARE_TEST_AS_YARE"

func TestMain(m *testing.M) {
	fakeplane.Main()
	if os.Getenv(asYare) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// A sandbox is a place to call yare in: folders of its own for temporary files and for
// the cached binaries, and a fake control plane.
type sandbox struct {
	t   *testing.T
	dir string // the working directory
	tmp string
	log string // the calls of kubectl
	env []string
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	fake, err := fakeplane.Link(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fakeNode, err := fakeplane.LinkNode(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	gocache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	// The go command's telemetry would write there even after the test.
	home := t.TempDir()
	telemetry := filepath.Join(home, ".config", "go", "telemetry")
	if err := os.MkdirAll(telemetry, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &sandbox{t: t, dir: t.TempDir(), tmp: t.TempDir(), log: filepath.Join(t.TempDir(), "log")}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name != "KUBECONFIG" && name != "GOFLAGS" && name != "PWD" {
			s.env = append(s.env, variable)
		}
	}
	s.env = append(s.env, asYare+"=1", "TMPDIR="+s.tmp, "XDG_CACHE_HOME="+t.TempDir(), "HOME="+home,
		"GOCACHE="+strings.TrimSpace(string(gocache)), plane.ControlPlane().Variable()+"="+fake, fakeplane.LogVariable+"="+s.log, plane.RealNode().Variable()+"="+fakeNode)
	return s
}

// write writes a file below the working directory. It appears at once, as most editors
// have it.
func (s *sandbox) write(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path+".new", []byte(content), 0o644)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// A call is a yare that runs.
type call struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    safeBuffer // both outputs
	stdout safeBuffer
	ended  chan struct{}
	err    error
}

func (s *sandbox) start(args ...string) *call {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	c := &call{t: s.t, cmd: exec.Command(self, args...), ended: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env = s.dir, s.env
	c.cmd.Stdout, c.cmd.Stderr = &both{&c.out, &c.stdout}, &c.out
	c.cmd.WaitDelay = 10 * time.Second
	if err := c.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	s.t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
	})
	return c
}

// run runs yare to its end.
func (s *sandbox) run(args ...string) (status int, stdout, all string) {
	s.t.Helper()
	c := s.start(args...)
	return c.wait(), c.stdout.String(), c.out.String()
}

// wait waits for the end of a call and returns its status.
func (c *call) wait() int {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(time.Minute):
		c.t.Fatalf("it does not end:\n%s", c.out.String())
	}
	var exit *exec.ExitError
	if errors.As(c.err, &exit) {
		return exit.ExitCode()
	}
	if c.err != nil {
		c.t.Fatal(c.err)
	}
	return 0
}

func (c *call) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

// says waits until the call has said something so many times.
func (c *call) says(times int, text string) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for strings.Count(c.out.String(), text) < times {
		select {
		case <-c.ended:
			if strings.Count(c.out.String(), text) >= times {
				return
			}
			c.t.Fatalf("it ended without saying %q (%d):\n%s", text, times, c.out.String())
		default:
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("it never says %q (%d):\n%s", text, times, c.out.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// eventually waits until text contains part.
func (c *call) eventually(part string, text func() string) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(text(), part); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("there is never %q in:\n%s", part, text())
		}
	}
}

// leftNothing checks that no temporary file is left.
func (s *sandbox) leftNothing() {
	s.t.Helper()
	entries, err := os.ReadDir(s.tmp)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, entry := range entries {
		s.t.Errorf("left behind: %s", entry.Name())
	}
}

func (s *sandbox) kubectlCalls() string {
	data, _ := os.ReadFile(s.log)
	return string(data)
}

type both struct{ a, b *safeBuffer }

func (w *both) Write(data []byte) (int, error) {
	_, _ = w.a.Write(data)
	return w.b.Write(data)
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(data)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, 0, "yare dev ./my-operator"},
		{[]string{"--help"}, 0, "Available Commands"},
		{[]string{"version"}, 0, "yare "},
		{[]string{"dev", "--help"}, 0, "--until-ready"},
		{[]string{"dev"}, 1, "yare dev DIR"},
		{[]string{"dev", "a", "b"}, 1, "one folder only"},
		{[]string{"down"}, 1, "there is no command"},
		{[]string{"up", "--node"}, 1, "unknown flag: --node: see `yare up --help`"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			status, _, all := newSandbox(t).run(test.args...)
			if status != test.status || !strings.Contains(all, test.want) {
				t.Errorf("status %d, want %d, and %q in:\n%s", status, test.status, test.want, all)
			}
			if status != 0 && strings.Contains(all, "Usage:") {
				t.Errorf("an error with a usage dump:\n%s", all)
			}
		})
	}
}
