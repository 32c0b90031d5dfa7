package follow_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
)

// Promise 6: a watch that falls silent is replaced by a watch from the same version. Silence is no
// failure, and is not reported: a healthy watch may be silent too.
func TestSilentWatchIsReplaced(t *testing.T) {
	t.Parallel()
	runScripts(t, []scripted{
		{
			name: "of a server that sends bookmarks, soon",
			answers: []answer{
				stream(endOfList("5"), pause(time.Minute), bookmark("6"), hang()),
				stream(added(object("a", 7)), hang()),
			},
			published: "= +a7",
			asked:     []string{"watch all", "watch from 6"},
		},
		{
			name: "of a server without bookmarks, when the watch is overdue",
			answers: []answer{
				refuse(422, "Invalid"),
				page("5", ""),
				stream(hang()),
				stream(added(object("a", 7)), hang()),
			},
			published: "= +a7",
			asked:     []string{"watch all", "list", "watch from 5", "watch from 5"},
		},
	})
}

// For some resources, such as events, an API server marks the end of a list and sends no
// bookmark afterwards: a quiet watch of them is not dead.
func TestSilenceWithoutBookmarksIsNormal(t *testing.T) {
	t.Parallel()
	runScripts(t, []scripted{{
		name:      "four minutes",
		answers:   []answer{stream(endOfList("5"), pause(4*time.Minute), added(object("a", 6)), hang())},
		published: "= +a6",
		asked:     []string{"watch all"},
	}})
}

// Regression: after one bookmark, each later watch had to bring a bookmark within 150 s, even a
// watch of another server, which sends none before it has seen an event. Each quiet watch counted
// as a failure, was reported, and led to a wait of up to 30 s.
func TestABookmarkPromisesNothingForTheNextWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{stream(endOfList("5"), pause(time.Minute), bookmark("9"))}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var ended time.Time
		for change, err := range follow.Changes(ctx, s, things) {
			if err != nil {
				t.Errorf("reported: %v", err)
			}
			switch change.Type {
			case follow.ChangeWatchEnded:
				ended = time.Now()
			case follow.ChangeWatchOpened:
				if blind := time.Since(ended); !ended.IsZero() && blind > time.Second {
					t.Errorf("no watch was open for %s", blind)
				}
			}
		}
		// The quiet watches of a server that does not end them last for 5.5 to 10.5 minutes.
		if n := len(s.requests()); n > 13 {
			t.Errorf("%d watches in one quiet hour", n)
		}
	})
}

// Regression: over HTTP/1.1 there are no pings, so that a dead watch without bookmarks was
// found after ten minutes.
func TestDeadWatchWithoutPingsIsFoundInMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{stream(endOfList("5"), hang())}}
		var longest time.Duration
		var opened time.Time
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		withoutPings := wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			response, err := s.Do(ctx, r)
			if err == nil {
				response.Pings = false
			}
			return response, err
		})
		for change, err := range follow.Changes(ctx, withoutPings, things) {
			switch {
			case err != nil:
				t.Errorf("reported: %v", err)
			case change.Type == follow.ChangeWatchOpened:
				opened = time.Now()
			case change.Type == follow.ChangeWatchEnded:
				longest = max(longest, time.Since(opened))
			}
		}
		if n := len(s.requests()); n < 13 || n > 30 || longest > 5*time.Minute {
			t.Errorf("%d watches in one hour, of which the longest was dead for %s", n, longest)
		}
	})
}

// A clean end of a watch is progress only after at least a second. The time that the server
// took to accept the watch does not count.
func TestOnlyAWatchThatLastedIsProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		watch       answer
		atMost      int
		atLeast     int
		wantReports bool
	}{
		"ended at once":                    {watch: stream(), atMost: 15, wantReports: true},
		"ended at once, accepted slowly":   {watch: slowly(2*time.Second, stream()), atMost: 15, wantReports: true},
		"ended at once, after a bookmark":  {watch: stream(bookmark("5"), bookmark("6")), atMost: 15, wantReports: true},
		"lasted for more than one second":  {watch: stream(pause(1100 * time.Millisecond)), atMost: 110, atLeast: 100},
		"an event, and ended at once":      {watch: eachTimeAnEvent(), atMost: 500, atLeast: 200},
		"an event, and lasted for seconds": {watch: eachTimeAnEvent(pause(2 * time.Second)), atMost: 61, atLeast: 55},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, answers: []answer{stream(endOfList("5"))}}
				for range 1000 {
					s.answers = append(s.answers, c.watch)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				reports := 0
				for _, err := range follow.Changes(ctx, s, things) {
					if err != nil {
						reports++
					}
				}
				if n := len(s.requests()); n > c.atMost || n < c.atLeast || (reports > 0) != c.wantReports {
					t.Errorf("%d requests and %d reports in two minutes", n, reports)
				}
			})
		})
	}
}

// slowly gives an answer after a while.
func slowly(d time.Duration, a answer) answer {
	return func(r *wire.Request) (*wire.Response, error) {
		time.Sleep(d)
		return a(r)
	}
}

// eachTimeAnEvent answers watches with a newer version of an object each time.
func eachTimeAnEvent(then ...part) answer {
	version := 10
	return func(r *wire.Request) (*wire.Response, error) {
		version++
		return stream(append([]part{added(object("a", version))}, then...)...)(r)
	}
}
