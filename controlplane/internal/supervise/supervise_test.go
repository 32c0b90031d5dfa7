package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yare-go/yare/controlplane/internal/lifeline"
	"github.com/yare-go/yare/controlplane/internal/process"
)

// childVariable makes this test binary behave as a component: its value says which.
const childVariable = "YARE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case "fails second start":
		const count = "starts"
		starts, _ := os.ReadFile(count)
		if err := os.WriteFile(count, append(starts, 'x'), 0o600); err != nil || len(starts) == 1 {
			os.Exit(3)
		}
		fallthrough
	case "good":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		line := lifeline.Inherited()
		line.ExitWithParent()
		fmt.Println("hello")
		line.Ready()
		<-ctx.Done()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		line := lifeline.Inherited()
		line.ExitWithParent()
		line.Ready()
		select {}
	case "failing":
		fmt.Println("listen tcp 127.0.0.1:1: bind: address already in use")
		os.Exit(3)
	case "mortal":
		line := lifeline.Inherited()
		line.Ready()
		time.Sleep(50 * time.Millisecond)
		os.Exit(4)
	}
}

// supervised starts the supervision of one component, and ends it with the test.
func supervised(t *testing.T, kind string) (m *Component, exits func() []*ExitError, result <-chan error) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launcher := process.NewLauncher()
	var (
		mu  sync.Mutex
		all []*ExitError
	)
	m = NewComponent(Spec{
		Name: kind,
		Process: process.Spec{
			Name: kind, Executable: executable, Env: []string{childVariable + "=" + kind},
			Dir: t.TempDir(), Log: filepath.Join(t.TempDir(), "log"),
		},
	}, launcher, func(e *ExitError) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, e)
	})
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		results <- m.Run(ctx, 100*time.Millisecond)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		launcher.Close()
	})
	return m, func() []*ExitError {
		mu.Lock()
		defer mu.Unlock()
		return all
	}, results
}

func do(t *testing.T, m *Component, verb Verb) int {
	t.Helper()
	pid, err := m.Execute(t.Context(), verb)
	if err != nil {
		t.Fatalf("%s: %v", verb, err)
	}
	return pid
}

func lives(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestVerbs(t *testing.T) {
	t.Parallel()
	m, exits, _ := supervised(t, "good")
	first := do(t, m, Start)
	if _, err := m.Execute(t.Context(), Start); err == nil {
		t.Error("a second start is no error")
	}
	do(t, m, Pause)
	if _, err := m.Execute(t.Context(), Pause); err == nil {
		t.Error("a second pause is no error")
	}
	do(t, m, Resume)
	second := do(t, m, Restart)
	if lives(first) || !lives(second) {
		t.Errorf("after the restart %d lives: %v, %d lives: %v", first, lives(first), second, lives(second))
	}
	do(t, m, Kill)
	if lives(second) {
		t.Error("it lives after it was killed")
	}
	if _, err := m.Execute(t.Context(), Stop); err == nil {
		t.Error("stopping what does not run is no error")
	}
	do(t, m, Start)
	do(t, m, Stop)
	if got := exits(); len(got) > 0 {
		t.Errorf("ends that were asked for were reported: %v", got)
	}
}

func TestCommandsAreCarriedOutInOrder(t *testing.T) {
	t.Parallel()
	m, _, _ := supervised(t, "good")
	var (
		mu    sync.Mutex
		order []Verb
		group sync.WaitGroup
	)
	for range 5 {
		for _, verb := range []Verb{Start, Kill} {
			group.Add(1)
			m.Enqueue(verb, func(_ int, err error) {
				defer group.Done()
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("%s: %v", verb, err)
				}
				order = append(order, verb)
			})
		}
	}
	group.Wait()
	if got := fmt.Sprint(order); got != "["+strings.TrimSpace(strings.Repeat("start kill ", 5))+"]" {
		t.Errorf("the order was %s", got)
	}
}

func TestStopOfAPausedComponent(t *testing.T) {
	t.Parallel()
	m, _, _ := supervised(t, "good")
	pid := do(t, m, Start)
	do(t, m, Pause)
	began := time.Now()
	do(t, m, Stop)
	if lives(pid) || time.Since(began) > stopGrace/2 {
		t.Errorf("it took %v, and lives: %v", time.Since(began), lives(pid))
	}
}

func TestStartThatFailsReturnsTheCause(t *testing.T) {
	t.Parallel()
	m, exits, _ := supervised(t, "failing")
	_, err := m.Execute(t.Context(), Start)
	exit, ok := errors.AsType[*ExitError](err)
	if !ok || exit.Component != "failing" || !exit.PortTaken || !strings.Contains(exit.Log, "bind") {
		t.Fatalf("the error is %#v", err)
	}
	if !strings.Contains(err.Error(), "failing ended: exit status 3") {
		t.Errorf("the error reads %q", err)
	}
	if len(exits()) > 0 {
		t.Error("it was reported a second time")
	}
}

func TestComponentThatKeepsEndingIsGivenUp(t *testing.T) {
	t.Parallel()
	m, exits, result := supervised(t, "mortal")
	do(t, m, Start)
	select {
	case err := <-result:
		if err == nil || !strings.Contains(err.Error(), "5 times in a row") {
			t.Errorf("the error is %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it was not given up")
	}
	if got := len(exits()); got != giveUpAfter {
		t.Errorf("%d ends were reported, want %d", got, giveUpAfter)
	}
	if _, err := m.Execute(t.Context(), Start); err == nil {
		t.Error("a command after the end is no error")
	}
}

// waitForRestart waits until the component runs as another process than pid, and returns that one.
func waitForRestart(t *testing.T, m *Component, pid int) int {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if again, err := m.Execute(t.Context(), Pause); err == nil && again != pid {
			return do(t, m, Resume)
		}
		if time.Now().After(deadline) {
			t.Fatal("it was not restarted")
		}
	}
}

// A component killed again and again, but ready for a while in between, is no component that keeps
// ending: a fifth kill of the API server once ended the whole control plane.
func TestComponentThatWasReadyInBetweenIsNotGivenUp(t *testing.T) {
	t.Parallel()
	m, exits, result := supervised(t, "good")
	pid := do(t, m, Start)
	const kills = giveUpAfter + 2
	for range kills {
		time.Sleep(minReadyTime) // what is tested is the passing of this time
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		pid = waitForRestart(t, m, pid)
	}
	select {
	case err := <-result:
		t.Errorf("it was given up: %v", err)
	default:
	}
	if got := len(exits()); got != kills {
		t.Errorf("%d ends were reported, want %d", got, kills)
	}
}

// A component that ends while it is refreshed is started again: it once stayed down, because
// nobody waited for the result.
func TestRefreshThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	m, exits, _ := supervised(t, "fails second start")
	pid := do(t, m, Start)
	if err := m.Refresh(t.Context()); err == nil {
		t.Fatal("the second start succeeded")
	}
	waitForRestart(t, m, pid)
	if got := len(exits()); got != 1 {
		t.Errorf("%d ends were reported, want 1", got)
	}
}

func TestUnexpectedEndIsReportedAndRestarted(t *testing.T) {
	t.Parallel()
	m, exits, _ := supervised(t, "good")
	pid := do(t, m, Start)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitForRestart(t, m, pid)
	if got := exits(); len(got) != 1 || got[0].Log != "hello" {
		t.Errorf("reported: %v", got)
	}
}

func TestEndKillsTheStubborn(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launcher := process.NewLauncher()
	defer launcher.Close()
	m := NewComponent(Spec{Name: "stubborn", Process: process.Spec{
		Executable: executable, Env: []string{childVariable + "=stubborn"}, Dir: t.TempDir(), Log: filepath.Join(t.TempDir(), "log"),
	}}, launcher, func(*ExitError) {})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx, 50*time.Millisecond) }()
	pid := do(t, m, Start)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if lives(pid) {
		t.Error("it still lives")
	}
}
