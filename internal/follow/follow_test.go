package follow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/kube/wire"
)

// scripted is a test case: a server's answers, the changes that are published, and the requests.
type scripted struct {
	name      string
	answers   []answer
	published string
	asked     []string
}

func (c scripted) run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: c.answers}
		want := strings.Fields(c.published)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		published := collect(ctx, s, enough(len(want)))
		if diff := cmp.Diff(want, published); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(c.asked, s.requests()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

func runScripts(t *testing.T, cases []scripted) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

// Promise 1: a 410 restarts from a fresh list, in whichever form it comes.
func TestGoneRestartsFromFreshList(t *testing.T) {
	t.Parallel()
	runScripts(t, []scripted{
		{
			name: "as an ERROR event in the stream",
			answers: []answer{
				stream(added(object("a", 1)), endOfList("5"), gone()),
				stream(added(object("a", 7)), endOfList("8"), hang()),
			},
			published: "+a1 = ~a7 =",
			asked:     []string{"watch all", "watch all"},
		},
		{
			name: "as an HTTP status",
			answers: []answer{
				stream(added(object("a", 1)), endOfList("5"), broken()),
				refuse(410, "Expired"),
				stream(added(object("a", 7)), endOfList("8"), hang()),
			},
			published: "+a1 = ! ~a7 =",
			asked:     []string{"watch all", "watch from 5", "watch all"},
		},
		{
			name: "of a server that pages lists",
			answers: []answer{
				refuse(422, "Invalid"),
				page("5", "", object("a", 1)),
				stream(gone()),
				page("8", "", object("a", 7)),
			},
			published: "+a1 = ~a7 =",
			asked:     []string{"watch all", "list", "watch from 5", "list"},
		},
	})
}

// Promise 2: a watch that dies is resumed from the last resourceVersion seen.
func TestWatchResumesWhereItWas(t *testing.T) {
	t.Parallel()
	runScripts(t, []scripted{
		{
			name: "after an event",
			answers: []answer{
				stream(endOfList("5"), added(object("a", 6)), modified(object("a", 9)), broken()),
				stream(modified(object("a", 12)), hang()),
			},
			published: "= +a6 ~a9 ! ~a12",
			asked:     []string{"watch all", "watch from 9"},
		},
		{
			name: "after a deletion, whose version is that of the deletion",
			answers: []answer{
				stream(added(object("a", 1)), endOfList("5"), deleted(object("a", 8))),
				stream(added(object("b", 9)), hang()),
			},
			published: "+a1 = -a8 +b9",
			asked:     []string{"watch all", "watch from 8"},
		},
		{
			name: "after a bookmark",
			answers: []answer{
				stream(endOfList("5"), bookmark("70")),
				stream(added(object("a", 71)), hang()),
			},
			published: "= +a71",
			asked:     []string{"watch all", "watch from 70"},
		},
		{
			name: "after a clean end, without a report",
			answers: []answer{
				stream(endOfList("5"), pause(time.Minute)),
				stream(pause(time.Minute)),
				stream(added(object("a", 6)), hang()),
			},
			published: "= +a6",
			asked:     []string{"watch all", "watch from 5", "watch from 5"},
		},
		{
			name: "the items of a streaming list are in no order: its end mark counts",
			answers: []answer{
				stream(added(object("a", 40)), added(object("b", 3)), endOfList("50"), pause(time.Minute)),
				stream(added(object("c", 51)), hang()),
			},
			published: "+a40 +b3 = +c51",
			asked:     []string{"watch all", "watch from 50"},
		},
		{
			name: "an ERROR event other than 410",
			answers: []answer{
				stream(endOfList("5"), added(object("a", 6)), frame("ERROR", status(500, "InternalError"))),
				stream(added(object("b", 7)), hang()),
			},
			published: "= +a6 ! +b7",
			asked:     []string{"watch all", "watch from 6"},
		},
		{
			name: "a stream that breaks in the middle of a frame",
			answers: []answer{
				stream(endOfList("5"), added(object("a", 6)), part{bytes: `{"type":"ADDED","obj`}),
				stream(added(object("b", 7)), hang()),
			},
			published: "= +a6 ! +b7",
			asked:     []string{"watch all", "watch from 6"},
		},
	})
}

// Promise 2: the initial state comes as a stream, else in pages; an attempt that is broken
// off leaves nothing behind.
func TestInitialState(t *testing.T) {
	t.Parallel()
	runScripts(t, []scripted{
		{
			name: "a server that does not stream lists",
			answers: []answer{
				refuse(422, "Invalid"),
				page("5", "next", object("a", 1), object("b", 2)),
				page("5", "", object("c", 3)),
				stream(added(object("d", 6)), hang()),
			},
			published: "+a1 +b2 +c3 = +d6",
			asked:     []string{"watch all", "list", "list next", "watch from 5"},
		},
		{
			name: "a server that ignores the question and just watches",
			answers: []answer{
				stream(added(object("a", 1)), hang()),
				page("5", "", object("a", 1)),
				stream(hang()),
			},
			published: "+a1 =",
			asked:     []string{"watch all", "list"},
		},
		{
			name: "silent once is a server that stalled, and silent twice one that does not know streaming lists",
			answers: []answer{
				stream(hang()),
				page("5", ""),
				stream(gone()),
				stream(hang()),
				page("6", ""),
				stream(gone()),
				page("7", "", object("a", 7)),
			},
			published: "= = ! +a7 =",
			asked:     []string{"watch all", "list", "watch from 5", "watch all", "list", "watch from 6", "list"},
		},
		{
			// The object ghost is of an aborted attempt, and was deleted before the next attempt.
			name: "the objects of a streaming list that breaks are not kept",
			answers: []answer{
				stream(added(object("a", 1)), added(object("ghost", 2)), broken()),
				stream(added(object("a", 1)), endOfList("5"), hang()),
			},
			published: "+a1 +ghost2 ! -ghost2? =",
			asked:     []string{"watch all", "watch all"},
		},
		{
			name: "a streaming list that ends early is not taken for complete",
			answers: []answer{
				stream(added(object("a", 1))),
				stream(added(object("a", 1)), added(object("b", 2)), endOfList("5"), hang()),
			},
			published: "+a1 ! +b2 =",
			asked:     []string{"watch all", "watch all"},
		},
		{
			name: "an expired continue token restarts the list, and the objects so far are not kept",
			answers: []answer{
				refuse(422, "Invalid"),
				page("5", "next", object("ghost", 1), object("b", 2)),
				refuse(410, "Expired"),
				page("9", "next", object("b", 2)),
				page("9", "", object("c", 3)),
			},
			published: "+ghost1 +b2 +c3 -ghost1? =",
			asked:     []string{"watch all", "list", "list next", "list", "list next"},
		},
		{
			name: "deleted while the list is streamed",
			answers: []answer{
				stream(added(object("a", 1)), added(object("b", 2)), deleted(object("a", 4)), endOfList("5"), hang()),
			},
			published: "+a1 +b2 -a4 =",
			asked:     []string{"watch all"},
		},
	})
}

// Promise 3: after a relist, the difference is published, whatever happened in the gap.
func TestRelistPublishesTheDifference(t *testing.T) {
	t.Parallel()
	before := stream(added(object("a", 1)), added(object("b", 2)), added(object("c", 3)), endOfList("5"), gone())
	runScripts(t, []scripted{
		{
			name:      "missing objects are deleted, unchanged ones are not mentioned",
			answers:   []answer{before, stream(added(object("a", 1)), added(object("b", 7)), endOfList("9"), hang())},
			published: "+a1 +b2 +c3 = ~b7 -c3? =",
			asked:     []string{"watch all", "watch all"},
		},
		{
			name:      "another object of the same name is a deletion and an addition",
			answers:   []answer{before, stream(added(object("a/other", 7)), added(object("b", 2)), added(object("c", 3)), endOfList("9"), hang())},
			published: "+a1 +b2 +c3 = -a1? +a7 =",
			asked:     []string{"watch all", "watch all"},
		},
		{
			name: "a recreated object whose deletion was missed in a watch",
			answers: []answer{
				stream(added(object("a", 1)), endOfList("5"), modified(object("a/other", 6)), deleted(object("a", 7)), added(object("b", 8)), hang()),
			},
			published: "+a1 = -a1? +a6 +b8",
			asked:     []string{"watch all"},
		},
		{
			name: "a resumed watch that repeats itself",
			answers: []answer{
				stream(added(object("a", 1)), endOfList("5"), broken()),
				stream(added(object("a", 1)), modified(object("a", 6)), hang()),
			},
			published: "+a1 = ! ~a6",
			asked:     []string{"watch all", "watch from 5"},
		},
	})
}

// Promise 5: failures back off, and a connection that is accepted is no progress.
func TestBackoffGrowsUntilProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{stream(endOfList("5"), broken())}}
		for range 8 { // accepted, but to no avail
			s.answers = append(s.answers, stream(broken()))
		}
		s.answers = append(s.answers, stream(bookmark("9"), broken()), stream(hang()))
		collect(t.Context(), s, enough(11))
		// gaps[i] is the wait before the request i+1.
		var gaps []time.Duration
		for i := 1; i < len(s.times); i++ {
			gaps = append(gaps, s.times[i].Sub(s.times[i-1]))
		}
		for i := 2; i < 9; i++ {
			if gaps[i] < min(gaps[i-2], 15*time.Second) {
				t.Errorf("the wait %d is %s, after %s two failures before", i, gaps[i], gaps[i-2])
			}
		}
		if gaps[8] < 10*time.Second || gaps[8] > 30*time.Second {
			t.Errorf("the longest wait is %s", gaps[8])
		}
		if len(gaps) > 9 && gaps[9] > time.Second {
			t.Errorf("the wait after progress is %s", gaps[9])
		}
	})
}

// Promise 5: the server's wish to be left alone is respected.
func TestRetryAfterIsRespected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{
			func(r *wire.Request) (*wire.Response, error) {
				e := statusError(r, 429, "TooManyRequests")
				e.RetryAfter = 17 * time.Second
				return nil, e
			},
			stream(endOfList("5"), hang()),
		}}
		if published := collect(t.Context(), s, enough(1)); published[0] != "=" {
			t.Errorf("a server that is busy for a moment was reported: %v", published)
		}
		if gap := s.times[1].Sub(s.times[0]); gap < 17*time.Second {
			t.Errorf("asked again after %s", gap)
		}
	})
}

// Bug: a Retry-After of a day, from a proxy on the way, stopped a stream for a day.
func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{
			func(r *wire.Request) (*wire.Response, error) {
				e := statusError(r, 503, "ServiceUnavailable")
				e.RetryAfter = 24 * time.Hour
				return nil, e
			},
			stream(endOfList("5"), hang()),
		}}
		collect(t.Context(), s, func(published []string) bool { return published[len(published)-1] == "=" })
		if gap := s.times[1].Sub(s.times[0]); gap > 2*time.Minute {
			t.Errorf("asked again after %s", gap)
		}
	})
}

// Promise 5, regression: a server that was away, is back and is not ready yet, is waited for only
// as long as it asks. A server that goes away once more after a fresh list is not waited for long.
func TestShortWaitsAfterALongOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := func(*wire.Request) (*wire.Response, error) { return nil, errors.New("connection refused") }
		busy := func(r *wire.Request) (*wire.Response, error) {
			e := statusError(r, 429, "TooManyRequests")
			e.RetryAfter = time.Second
			return nil, e
		}
		s := &script{t: t, answers: []answer{stream(endOfList("5"), broken())}}
		for range 7 {
			s.answers = append(s.answers, away)
		}
		back := len(s.answers)
		s.answers = append(s.answers, busy, busy,
			refuse(410, "Expired"), stream(added(object("a", 8)), endOfList("8"), broken()), away, refuse(410, "Expired"), stream(endOfList("9"), hang()))
		collect(t.Context(), s, func(published []string) bool { return strings.Count(strings.Join(published, ""), "=") == 3 })
		for i := back + 1; i < len(s.times); i++ {
			if gap := s.times[i].Sub(s.times[i-1]); gap > 2*time.Second {
				t.Errorf("the wait before the request %d (%s) is %s", i-back, s.asked[i], gap)
			}
		}
	})
}

// Leaving the loop, and the end of the context, end everything: synctest fails a test
// whose goroutines are left.
func TestEndLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context, *script){
		"the loop is left": func(ctx context.Context, s *script) { collect(ctx, s, enough(1)) },
		"the context ends": func(ctx context.Context, s *script) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			collect(ctx, s, enough(1000))
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Error("the sequence ended before its context")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				end(t.Context(), &script{t: t, answers: []answer{stream(endOfList("5"), hang())}})
			})
		})
	}
}
