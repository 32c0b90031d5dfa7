package engine

import (
	"context"
	"errors"
	"testing"
)

// fakeLauncher launches processes that do nothing.
type fakeLauncher struct{ launched []*fakeProcess }

func (l *fakeLauncher) String() string      { return "fake" }
func (l *fakeLauncher) account() *Account   { return nil }
func (l *fakeLauncher) coverFolder() string { return "" }
func (l *fakeLauncher) close() error        { return nil }

func (l *fakeLauncher) launch(processSettings) (process, error) {
	p := &fakeProcess{done: make(chan struct{})}
	l.launched = append(l.launched, p)
	return p, nil
}

// fakeProcess is a process that runs until done is closed.
type fakeProcess struct {
	done     chan struct{}
	isKilled bool
}

func (p *fakeProcess) advance(context.Context) (bool, error) { return true, nil }
func (p *fakeProcess) isWorking() bool                       { return false }

func (p *fakeProcess) writeCoverage()         {}
func (p *fakeProcess) kill()                  { p.isKilled = true }
func (p *fakeProcess) ended() <-chan struct{} { return p.done }
func (p *fakeProcess) err() error             { return errors.New("it ended") }

// A crash kills the process, and the program starts again at once or when it is restarted. A program that ends by
// itself is noticed.
func TestReplicasCrashAndRestart(t *testing.T) {
	t.Parallel()
	r, launcher := newTestReplicas(t)
	if err := r.crash("a crash", false); err != nil {
		t.Fatal(err)
	}
	if !r.isDown() || !launcher.launched[0].isKilled || len(launcher.launched) != 1 {
		t.Errorf("after a crash: down %t, processes %d", r.isDown(), len(launcher.launched))
	}
	if err := r.restart(); err != nil {
		t.Fatal(err)
	}
	if r.isDown() || len(launcher.launched) != 2 || r.exitError() != nil {
		t.Errorf("after the restart: down %t, processes %d, exit %v", r.isDown(), len(launcher.launched), r.exitError())
	}
	close(launcher.launched[1].done)
	if r.exitError() == nil {
		t.Error("the end of the program is not noticed")
	}
}
