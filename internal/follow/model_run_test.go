package follow_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
)

// Promises 1, 2, 3 and 6: whatever a server does, what is published is well-formed, and when the
// server comes to rest, it is what the server has.
func TestFollowMatchesTheServer(t *testing.T) {
	t.Parallel()
	seeds := 1000
	if testing.Short() {
		seeds = 200
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 2))
			actions := make([]byte, 2*(10+rng.IntN(120)))
			for i := range actions {
				actions[i] = byte(rng.Uint32())
			}
			runModel(t, seed, actions)
		})
	}
}

// FuzzFollow does the same with actions that the fuzzer finds.
func FuzzFollow(f *testing.F) {
	f.Add(uint64(1), []byte("\x00\x00\x01\x01\x80\x06\x00\x02"))
	f.Add(uint64(2), []byte("\x02\x00\x08\x03\x80\x04\xff\xff\x80\x0e"))
	f.Fuzz(func(t *testing.T, seed uint64, actions []byte) {
		runModel(t, seed, actions[:min(len(actions), 600)])
	})
}

// runModel follows a model while actions are done to it. Each action has two bytes: the first
// selects what is done, and the second how long the test waits afterwards.
func runModel(t *testing.T, seed uint64, actions []byte) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(seed)
		ctx, cancel := context.WithCancel(t.Context())
		w := &witness{t: t, model: m, published: map[string]modelObject{}, versions: map[string]int{}}
		var running sync.WaitGroup
		running.Go(func() { w.follow(ctx) })
		for ; len(actions) > 1; actions = actions[2:] {
			what, wait := int(actions[0]), actions[1]
			switch {
			case what&0x80 == 0:
				m.write(what%5, modelNames[what/5%len(modelNames)])
			case what%16 == 15:
				// What was lost can be found as long as the server has not passed its old
				// version. A connection that was dead before takes its time.
				m.restore()
				time.Sleep(15 * time.Minute)
				w.compare(m.now())
			default:
				m.fault(what % 16)
			}
			if wait&0x80 == 0 {
				time.Sleep(time.Duration(wait) * time.Millisecond)
			} else {
				time.Sleep(time.Duration(wait-0x80) * time.Second)
			}
		}
		// The server comes to rest. The client must notice silence.
		m.heal()
		for range 40 {
			time.Sleep(30 * time.Second)
			m.fault(8)
		}
		w.compare(m.now())
		// And it still follows.
		m.write(2, "a")
		m.write(0, "b")
		time.Sleep(time.Minute)
		w.compare(m.now())
		cancel()
		running.Wait()
	})
}

// witness records what is published, and checks each step.
type witness struct {
	t     *testing.T
	model *model

	mu        sync.Mutex
	published map[string]modelObject
	versions  map[string]int // the highest of each uid
	listed    int
	restores  int      // that the current list has taken into account
	open      bool     // whether a watch is open
	steps     []string // the last of them
}

func (w *witness) follow(ctx context.Context) {
	slow := rand.New(rand.NewPCG(1, 3))
	for change, err := range follow.Changes(ctx, wire.HandlerFunc(w.model.Do), things) {
		w.record(change, err)
		if slow.IntN(20) == 0 {
			time.Sleep(time.Duration(slow.IntN(2000)) * time.Millisecond)
		}
	}
}

func (w *witness) record(c follow.Change, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	step := changeText(c, err)
	if w.steps = append(w.steps, step); len(w.steps) > 30 {
		w.steps = w.steps[1:]
	}
	w.check(err == nil || !w.open, "reported while a watch is open: %v", err)
	before, had := w.published[c.Key.Name]
	version, _ := strconv.Atoi(c.ResourceVersion)
	switch c.Type {
	case follow.ChangeAdded:
		w.check(!had, "added although it is there: %v", before)
	case follow.ChangeModified:
		w.check(had && before.uid == string(c.UID), "modified, but this is there: %v", before)
	case follow.ChangeDeleted:
		w.check(had && before.uid == string(c.UID), "deleted, but this is there: %v", before)
		if c.Object != nil {
			w.check(version > before.version, "deleted before it came to be: %v", before)
			w.versions[before.uid] = version
		} else {
			w.check(version == before.version, "the last version that was seen is another: %v", before)
		}
		delete(w.published, c.Key.Name)
		return
	case follow.ChangeWatchOpened:
		w.check(!w.open, "opened although a watch is open")
		w.open = true
		return
	case follow.ChangeWatchEnded:
		w.check(w.open, "ended although no watch is open")
		w.open = false
		return
	case follow.ChangeListStarted:
		w.check(!w.open, "a list begins although a watch is open")
		if n := w.model.restoreCount(); n > w.restores {
			// Versions that were seen before mean nothing any more.
			w.restores, w.listed = n, 0
			clear(w.versions)
		}
		return
	case follow.ChangeListed:
		if w.model.restoreCount() > w.restores {
			return // the state of the list may be one that was lost since
		}
		at, ok := w.model.hadState(w.published, w.listed)
		w.check(ok, "the server was never in this state: %v", w.published)
		w.listed = at
		return
	default:
		return
	}
	w.check(c.Object != nil, "there is no object")
	w.check(version > w.versions[string(c.UID)], "the version %d was published already", w.versions[string(c.UID)])
	w.versions[string(c.UID)] = version
	w.published[c.Key.Name] = modelObject{name: c.Key.Name, uid: string(c.UID), version: version}
}

func (w *witness) check(ok bool, format string, args ...any) {
	w.t.Helper()
	if !ok {
		w.t.Errorf("after %v: %s", w.steps, fmt.Sprintf(format, args...))
	}
}

func (w *witness) compare(want map[string]modelObject) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !maps.Equal(want, w.published) {
		w.t.Errorf("after %v, when the server rests (-has +published):\n%s", w.steps,
			cmp.Diff(want, w.published, cmp.AllowUnexported(modelObject{})))
	}
}
