package follow_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/watch"
)

// A watch that is resumed too early shows old events again: none of them is published, and
// above all nothing goes back in time.
func TestOldEventsAreNoNews(t *testing.T) {
	t.Parallel()
	runScripts(t, []scripted{
		{
			name: "an older version",
			answers: []answer{
				stream(added(object("a", 1)), modified(object("a", 6)), modified(object("a", 7)), endOfList("5"), broken()),
				stream(modified(object("a", 6)), modified(object("a", 7)), modified(object("a", 8)), hang()),
			},
			published: "+a1 ~a6 ~a7 = ! ~a8",
			asked:     []string{"watch all", "watch from 5"},
		},
		{
			name: "the version to go on from does not go back with them",
			answers: []answer{
				stream(added(object("a", 1)), endOfList("5"), modified(object("a", 8)), modified(object("a", 6)), broken()),
				stream(modified(object("a", 9)), hang()),
			},
			published: "+a1 = ~a8 ! ~a9",
			asked:     []string{"watch all", "watch from 8"},
		},
		{
			name: "the predecessor under the same name, and its end",
			answers: []answer{
				stream(added(object("a/old", 1)), deleted(object("a/old", 6)), added(object("a/new", 7)), endOfList("5"), broken()),
				stream(modified(object("a/old", 3)), deleted(object("a/old", 6)), added(object("a/new", 7)), added(object("b", 8)), hang()),
			},
			published: "+a1 -a6 +a7 = ! +b8",
			asked:     []string{"watch all", "watch from 5"},
		},
		{
			name: "an object that had left the selector and is back",
			answers: []answer{
				stream(added(object("a", 1)), deleted(object("a", 6)), added(object("a", 7)), endOfList("5"), broken()),
				stream(deleted(object("a", 6)), added(object("a", 7)), added(object("b", 8)), hang()),
			},
			published: "+a1 -a6 +a7 = ! +b8",
			asked:     []string{"watch all", "watch from 5"},
		},
		{
			name: "an object that came and went",
			answers: []answer{
				stream(added(object("a", 6)), modified(object("a", 7)), deleted(object("a", 8)), endOfList("5"), broken()),
				stream(added(object("a", 6)), modified(object("a", 7)), deleted(object("a", 8)), added(object("a/new", 9)), hang()),
			},
			published: "+a6 ~a7 -a8 = ! +a9",
			asked:     []string{"watch all", "watch from 5"},
		},
		{
			name:      "an object of a list that is known to be deleted",
			answers:   []answer{stream(deleted(object("a", 6)), added(object("a", 1)), endOfList("6"), hang())},
			published: "=",
			asked:     []string{"watch all"},
		},
		{
			// Versions are compared within one list only: a server may have been set back.
			name: "the deletion of an object that is back at an older version in the next list",
			answers: []answer{
				stream(added(object("a", 1)), deleted(object("a", 6)), broken()),
				stream(added(object("a", 1)), endOfList("5"), hang()),
			},
			published: "+a1 -a6 ! +a1 =",
			asked:     []string{"watch all", "watch all"},
		},
	})
}

// A server is busy for a moment each time that a custom resource is new to it ("storage is
// (re)initializing"). Reported at once, this was the first line that the example book
// printed.
func TestBusyServerIsTroubleOnlyWhenItLasts(t *testing.T) {
	t.Parallel()
	busy := refuse(429, "TooManyRequests")
	runScripts(t, []scripted{
		{
			name:      "for a moment",
			answers:   []answer{busy, busy, stream(added(object("a", 1)), endOfList("5"))},
			published: "+a1 =",
			asked:     []string{"watch all", "watch all", "watch all"},
		},
		{
			name:      "for longer",
			answers:   []answer{busy, busy, busy, busy, stream(endOfList("5"))},
			published: "! =",
			asked:     []string{"watch all", "watch all", "watch all", "watch all", "watch all"},
		},
	})
}

// Answers that no server should give are reported, and tried again.
func TestNonsenseIsReported(t *testing.T) {
	t.Parallel()
	runScripts(t, []scripted{
		{
			name:      "an event of an unknown type",
			answers:   []answer{stream(endOfList("5"), frame("RENAMED", object("a", 6))), stream(added(object("a", 7)))},
			published: "= ! +a7",
			asked:     []string{"watch all", "watch from 5"},
		},
		{
			name:      "a list without a resourceVersion",
			answers:   []answer{refuse(422, "Invalid"), page("", ""), page("5", "")},
			published: "! =",
			asked:     []string{"watch all", "list", "list"},
		},
		{
			name: "a watch without a stream",
			answers: []answer{
				func(*wire.Request) (*wire.Response, error) { return &wire.Response{Code: 200}, nil },
				stream(endOfList("5")),
			},
			published: "! =",
			asked:     []string{"watch all", "watch all"},
		},
		{
			name:      "what is no JSON",
			answers:   []answer{stream(part{bytes: "<html>"}), stream(endOfList("5"))},
			published: "! =",
			asked:     []string{"watch all", "watch all"},
		},
	})
}

// Promise 5: what a server repeats for ever is no progress, or there would be a request
// after the other without a pause.
func TestUselessAnswersBackOff(t *testing.T) {
	t.Parallel()
	for name, useless := range map[string]struct{ first, then []answer }{
		"every version is too old": {then: []answer{stream(added(object("a", 1)), endOfList("5"), gone())}},
		"every version is too old, by pages": {
			first: []answer{refuse(422, "Invalid")},
			then:  []answer{page("5", "", object("a", 1)), refuse(410, "Expired")},
		},
		"a streaming list that stalls, and pages that are refused": {
			first: []answer{stream(hang())},
			then:  []answer{refuse(400, "BadRequest")},
		},
		"a watch that ends at once": {
			first: []answer{stream(endOfList("5"))},
			then:  []answer{stream()},
		},
		"a watch that brings one bookmark again and again": {
			first: []answer{stream(endOfList("5"))},
			then:  []answer{stream(bookmark("5"))},
		},
		"a watch that begins at the beginning each time": {
			first: []answer{stream(endOfList("5"))},
			then:  []answer{stream(added(object("a", 1)), modified(object("a", 4)))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, answers: useless.first}
				for range 200 {
					s.answers = append(s.answers, useless.then...)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				for range follow.Changes(ctx, s, things) {
				}
				// Five minutes at 30 s each, and the shorter ones before.
				if n := len(s.requests()); n > 60 {
					t.Errorf("%d requests in five minutes", n)
				}
			})
		})
	}
}

// Promise 5: a stream's failures are its own. kube-rs has one backoff for all, which any
// healthy event resets.
func TestEachStreamBacksOffByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		healthy, ailing := &script{t: t}, &script{t: t}
		healthy.answers = []answer{stream(endOfList("1"))}
		for i := range 600 {
			healthy.answers = append(healthy.answers, stream(bookmark("5"), pause(time.Second), added(object("a", 10+i))))
			ailing.answers = append(ailing.answers, refuse(500, "InternalError"))
		}
		h := wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Namespace == "ailing" {
				return ailing.Do(ctx, r)
			}
			return healthy.Do(ctx, r)
		})
		client := kube.NewClientFromHandler(h).InNamespaces("ailing", "healthy")
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
		defer cancel()
		for range watch.Events(ctx, kube.Everywhere[thing](client)) {
		}
		if n := len(ailing.requests()); n < 10 || n > 50 {
			t.Errorf("%d requests to the namespace that fails, in eight minutes", n)
		}
		if n := len(healthy.requests()); n < 400 {
			t.Errorf("only %d requests to the healthy one", n)
		}
	})
}
