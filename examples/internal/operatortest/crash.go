package operatortest

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/yaretest"
)

// An operator that is killed at any of its writes, before or after the server carried it out, and
// started again, achieves the same as without the crash.
func (s *suite) testCrashes(t *testing.T) {
	whole := s.world(t)
	whole.start(t)
	var want []state
	var tests []subtest
	for i, chapter := range story {
		before := len(whole.proxy.Writes())
		chapter.act(t, whole)
		want = append(want, chapter.check(t, whole))
		writes := whole.proxy.Writes()[before:]
		t.Logf("its writes when an object is %s: %v", chapter.name, writes)
		// The number of status writes depends on how quickly Pods become ready, so a run may not
		// reach the write at which it should crash. One write of each kind is certain.
		certain := kindsOf(writes)
		for n := range writes {
			for _, moment := range []yaretest.Moment{yaretest.BeforeWrite, yaretest.AfterWrite} {
				tests = append(tests, subtest{fmt.Sprintf("%s %s write %d", chapter.name, moment, n+1), func(t *testing.T) {
					s.testCrash(t, want, crash{chapter: i, write: n + 1, moment: moment, certain: n < certain})
				}})
			}
		}
	}
	whole.requireNothingLeft(t)
	whole.stop(t)
	whole.requireNoErrors(t)
	inParallel(t, 6, tests)
}

// crash is a crash at a write in a chapter of the story.
type crash struct {
	chapter, write int
	moment         yaretest.Moment
	certain        bool
}

func (s *suite) testCrash(t *testing.T, want []state, c crash) {
	w := s.world(t)
	w.start(t)
	for i, chapter := range story {
		if i == c.chapter {
			w.proxy.CutAtWrite(c.write, c.moment)
		}
		chapter.act(t, w)
		chapter.check(t, w)
		if i == c.chapter {
			// The chapter may end before the connection is cut.
			if c.certain {
				yaretest.Eventually(t, func() error {
					if w.restartIfCut(t); w.crashes == 0 {
						return fmt.Errorf("it made no write %d when an object was %s", c.write, chapter.name)
					}
					return nil
				})
			}
			w.restartIfCut(t)
			w.proxy.CutAtWrite(math.MaxInt/2, c.moment) // not in another chapter
		}
		compareStates(t, chapter.name, want[i], chapter.check(t, w))
	}
	w.requireNothingLeft(t)
	w.stop(t)
}

// kindsOf returns the number of writes that differ in more than their outcome.
func kindsOf(writes []yaretest.Request) int {
	kinds := make(map[string]bool)
	for _, w := range writes {
		kinds[fmt.Sprint(w.Verb, w.Resource, w.Subresource)] = true
	}
	return len(kinds)
}

// story is the life of an object. check waits until the cluster is as it must be at the end of a
// chapter, and returns the state then.
var story = []struct {
	name  string
	act   func(*testing.T, *world)
	check func(*testing.T, *world) state
}{
	{
		"created",
		func(t *testing.T, w *world) { w.apply(t, "app", first) },
		func(t *testing.T, w *world) state { return w.waitUntilReady(t, "app", first) },
	},
	{
		"changed",
		func(t *testing.T, w *world) { w.apply(t, "app", second) },
		func(t *testing.T, w *world) state { return w.waitUntilReady(t, "app", second) },
	},
	{
		"deleted",
		func(t *testing.T, w *world) { w.delete(t, "app") },
		func(t *testing.T, w *world) state { w.waitUntilGone(t, "app"); return nil },
	},
}

// requireNothingLeft fails t if children are left.
func (w *world) requireNothingLeft(t *testing.T) {
	t.Helper()
	for _, child := range parse(t, w.Children("app", first)) {
		left, err := w.apiOf(t, child).List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range left {
			t.Errorf("%s %s is left", l.GetKind(), l.GetName())
		}
	}
}

func compareStates(t *testing.T, when string, want, got state) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}
