package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// processes returns the number of processes of a running plane: up and its components.
func processes() int { return 1 + len(components()) }

// The ends of planes come one after the other: several that start at the same time would
// only wait for each other.
func TestTheEnd(t *testing.T) {
	t.Parallel()
	findBinary(t)
	t.Run("foreign file", foreignFileIsRefused)
	t.Run("SIGINT", endsWithInterrupt)
	t.Run("signal while it starts", endsWhileItStarts)
	t.Run("end of input", endsWithItsInput)
	t.Run("second signal", endsAtOnceWithASecondSignal)
	t.Run("killed", killedAndSwept)
	t.Run("parent killed", endsWithItsParent)
	t.Run("a component keeps ending", endsWithAComponentThatKeepsEnding)
}

// nothingRuns returns an error if a process is left that belongs to a home.
func nothingRuns(t *testing.T, home string) error {
	if left := mentioning(t, home); len(left) > 0 {
		return fmt.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	return nil
}

// nothingIsLeft fails t if after the end of a program a process or a file is left.
func nothingIsLeft(t *testing.T, home string) {
	t.Helper()
	if err := nothingRuns(t, home); err != nil {
		t.Error(err)
	}
	if left := files(t, home); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// allRun fails t unless up and all components run: what looks for processes must find
// them, or it proves nothing when it finds none.
func allRun(t *testing.T, home string) {
	t.Helper()
	if found := mentioning(t, home); canSeeProcesses && len(found) != processes() {
		t.Errorf("%d processes, not %d: %v", len(found), processes(), found)
	}
}

// A file that up did not write is left unchanged, before anything is started.
func foreignFileIsRefused(t *testing.T) {
	home, _ := newHome(t)
	file := filepath.Join(home, "kubeconfig")
	const content = "apiVersion: v1\nkind: Config\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	p := up(t, home, "--kubeconfig", file)
	if status := p.status(t); status != 1 {
		t.Errorf("the status is %d", status)
	}
	_, errs := p.output()
	for _, part := range []string{file, "was not written by yare up", "remove it, or give another --kubeconfig"} {
		if !strings.Contains(errs, part) {
			t.Errorf("the error does not say %q: %s", part, errs)
		}
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != content {
		t.Errorf("the file is now %q, %v", now, err)
	}
	if left := files(t, home); len(left) != 1 {
		t.Errorf("there are now %v", left)
	}
}

// isReady fails t unless a plane can be used now, without any wait.
func isReady(t *testing.T, file string) {
	t.Helper()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the kubeconfig is %v, %v", info.Mode(), err)
	}
	client := clientOf(t, file)
	nodes, err := kube.Everywhere[corev1.Node](client).List(t.Context())
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	if err := healthy(nodes[0]); err != nil {
		t.Error(err)
	}
	pods := kube.Namespaced[corev1.Pod](client, "default")
	create(t, pods, newPod("a"))
	waitForPod(t, pods, "a", runs(true))
}

func endsWithInterrupt(t *testing.T) {
	home, tmp := newHome(t)
	file := filepath.Join(home, "kubeconfig")
	p := up(t, home, "--kubeconfig", file)
	content := p.waitForFile(t, file, "")
	isReady(t, file)
	t.Log(p.waitForLine(t, "ready after"))
	allRun(t, home)
	folders, err := filepath.Glob(filepath.Join(tmp, "*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("the temporary folder holds %v", folders)
	}
	if info, err := os.Stat(folders[0]); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode of the plane's folder is %v, %v", info.Mode(), err)
	}

	// Its file belongs to it as long as it lives.
	second := up(t, home, "--kubeconfig", file)
	if status := second.status(t); status != 1 {
		t.Errorf("the status of a second one with the same file is %d", status)
	}
	if _, errs := second.output(); !strings.Contains(errs, "belongs to a control plane that still runs") {
		t.Errorf("a second one with the same file: %s", errs)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != content {
		t.Errorf("the file is now %q, %v", now, err)
	}

	// As a terminal does: to the whole process group.
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if status := p.status(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
	nothingIsLeft(t, home)
	if _, errs := p.output(); errs != "" {
		t.Errorf("on standard error: %s", errs)
	}
}

func endsWhileItStarts(t *testing.T) {
	home, _ := newHome(t)
	file := filepath.Join(home, "kubeconfig")
	p := up(t, home, "--kubeconfig", file)
	p.waitForLine(t, "starting kubelet")
	yaretest.Eventually(t, func() error {
		if found := mentioning(t, home); canSeeProcesses && len(found) != processes() {
			return fmt.Errorf("only these run: %v", found)
		}
		return nil
	})
	p.signal(t, syscall.SIGTERM)
	if status := p.status(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
	nothingIsLeft(t, home)
	if out, errs := p.output(); strings.Contains(out, "ready") || errs != "" {
		t.Errorf("it output %s%s", out, errs)
	}
}

// ready is the event of up --control.
type ready struct {
	Kubeconfig, Dir string
	Pids            map[string]int
}

func (p *program) waitUntilReady(t *testing.T) ready {
	t.Helper()
	var r ready
	if err := json.Unmarshal([]byte(p.waitForLine(t, `"event":"ready"`)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Pids) != len(components()) {
		t.Errorf("the components are %v", r.Pids)
	}
	for name, pid := range r.Pids {
		if !alive(pid) {
			t.Errorf("%s is not the process %d", name, pid)
		}
	}
	return r
}

// areGone returns an error if a component lives.
func (r ready) areGone() error {
	for name, pid := range r.Pids {
		if alive(pid) {
			return fmt.Errorf("%s is left: process %d", name, pid)
		}
	}
	return nil
}

func endsWithItsInput(t *testing.T) {
	home, _ := newHome(t)
	p := up(t, home, "--control")
	r := p.waitUntilReady(t)
	if filepath.Dir(r.Kubeconfig) != r.Dir {
		t.Errorf("the kubeconfig is %s, the folder %s", r.Kubeconfig, r.Dir)
	}
	isReady(t, r.Kubeconfig)
	allRun(t, home)
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if status := p.status(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
	if err := r.areGone(); err != nil {
		t.Error(err)
	}
	nothingIsLeft(t, home)
}

// A second signal ends up at once. No process outlives it; the next up removes its folder.
func endsAtOnceWithASecondSignal(t *testing.T) {
	home, tmp := newHome(t)
	p := up(t, home, "--control")
	r := p.waitUntilReady(t)
	p.signal(t, syscall.SIGTERM)
	p.signal(t, syscall.SIGINT)
	status := p.status(t)
	yaretest.Eventually(t, func() error { return errors.Join(r.areGone(), nothingRuns(t, home)) })
	left := files(t, tmp)
	t.Logf("the status is %d, and %d files are left", status, len(left))
	if status != 1 && (status != 0 || len(left) > 0) { // The first can be done before the second comes.
		t.Errorf("the status is %d, and left are %v", status, left)
	}
}

// A plane whose up was killed leaves no process. The next plane removes or replaces all
// files of the killed plane.
func killedAndSwept(t *testing.T) {
	if !canSeeProcesses {
		t.Skip("only Linux ends the children of a process that was killed for certain")
	}
	home, tmp := newHome(t)
	file := filepath.Join(home, "kubeconfig")
	killed := up(t, home, "--kubeconfig", file)
	stale := killed.waitForFile(t, file, "")
	allRun(t, home)
	folders, err := filepath.Glob(filepath.Join(tmp, "*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("the temporary folder holds %v", folders)
	}
	// A paused process cannot notice by itself that its parent is gone.
	if err := syscall.Kill(pidOf(t, home, yaretest.Etcd), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	killed.signal(t, syscall.SIGKILL)
	if status := killed.status(t); status != -1 {
		t.Errorf("the status is %d", status)
	}
	yaretest.Eventually(t, func() error { return nothingRuns(t, home) })
	for _, path := range []string{file, folders[0]} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("there is nothing for the next one to remove: %v", err)
		}
	}

	p := up(t, home, "--kubeconfig", file)
	p.waitForFile(t, file, stale)
	isReady(t, file)
	if _, err := os.Stat(folders[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the one that was killed is still there: %v", err)
	}
	allRun(t, home)
	p.signal(t, syscall.SIGTERM)
	if status := p.status(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
	nothingIsLeft(t, home)
}

// The end of a killed program also ends the plane that the program started. The plane ends
// in good order: it leaves no file.
func endsWithItsParent(t *testing.T) {
	home, _ := newHome(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = environment(home, parentVariable+"="+findBinary(t))
	parent := start(t, home, cmd)
	var r ready
	if err := json.Unmarshal([]byte(parent.waitForLine(t, yaretest.Etcd)), &r.Pids); err != nil {
		t.Fatal(err)
	}
	if found := mentioning(t, home); canSeeProcesses && len(found) != 1+processes() {
		t.Errorf("%d processes, not %d: %v", len(found), 1+processes(), found)
	}
	parent.signal(t, syscall.SIGKILL)
	parent.status(t)
	yaretest.Eventually(t, func() error { return errors.Join(r.areGone(), nothingRuns(t, home)) })
	if left := files(t, home); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// pidOf waits until a component of a home's plane runs, and returns its process id.
func pidOf(t *testing.T, home, component string) (pid int) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		for _, line := range mentioning(t, home) {
			if strings.Contains(line, " "+component+" --") {
				_, err := fmt.Sscan(line, &pid)
				return err
			}
		}
		return fmt.Errorf("%s does not run", component)
	})
	return pid
}

// A component that ends again and again is given up, and the plane with it, in good order.
func endsWithAComponentThatKeepsEnding(t *testing.T) {
	if !canSeeProcesses {
		t.Skip("only Linux shows the process ID of a component that was started again")
	}
	home, _ := newHome(t)
	p := up(t, home, "--control")
	p.waitUntilReady(t)
	const tooOften = 5
	for range tooOften {
		pid := pidOf(t, home, yaretest.Kubelet)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		yaretest.Eventually(t, func() error {
			if alive(pid) {
				return fmt.Errorf("the process %d is not gone", pid)
			}
			return nil
		})
	}
	if status := p.status(t); status != 1 {
		t.Errorf("the status is %d", status)
	}
	out, errs := p.output()
	if n := strings.Count(out, `"event":"exited","component":"kubelet"`); n != tooOften {
		t.Errorf("it reports %d ends, not %d", n, tooOften)
	}
	if !strings.Contains(out, `"event":"failed"`) || !strings.Contains(errs, "5 times in a row, without being ready for 1s in between: kubelet ended") {
		t.Errorf("it does not say why it ends: %s", errs)
	}
	nothingIsLeft(t, home)
}
