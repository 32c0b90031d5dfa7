package follow_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
)

// liveness follows a script and returns the first n changes, reports included: "(" for an opened
// watch, ")" for an ended one, "list" for the beginning of a list, and the others as follow does.
func liveness(t *testing.T, s *script, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var changes []string
	for change, err := range follow.Changes(ctx, s, things) {
		text := changeText(change, err)
		switch change.Type {
		case follow.ChangeListStarted:
			text = "list"
		case follow.ChangeWatchOpened:
			text = "("
		case follow.ChangeWatchEnded:
			text = ")"
		}
		if changes = append(changes, text); len(changes) >= n {
			break
		}
	}
	return changes
}

// A cache may rely on what it holds only while its watch is open: each way in which a watch ends
// is published before anything else happens. A list under way is no open watch.
func TestWatchesArePublishedAsOpenAndEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answers []answer
		want    string
	}{
		{
			name:    "open after the end of a streaming list, and ended by the server",
			answers: []answer{stream(added(object("a", 1)), endOfList("5"), pause(time.Minute)), stream(added(object("b", 6)), hang())},
			want:    "list +a1 = ( ) ( +b6",
		},
		{
			name:    "open after a list in pages",
			answers: []answer{refuse(422, "Invalid"), page("5", "", object("a", 1)), stream(added(object("b", 6)), hang())},
			want:    "list list +a1 = ( +b6",
		},
		{
			name:    "a list that breaks off never was open",
			answers: []answer{stream(added(object("a", 1)), broken()), stream(added(object("a", 1)), endOfList("5"), hang())},
			want:    "list +a1 ! list = (",
		},
		{
			name:    "broken: ended before the report",
			answers: []answer{stream(endOfList("5"), broken()), stream(added(object("b", 6)), hang())},
			want:    "list = ( ) ! ( +b6",
		},
		{
			name:    "refused afterwards: it stays ended",
			answers: []answer{stream(endOfList("5"), broken()), refuse(403, "Forbidden"), stream(added(object("b", 6)), hang())},
			want:    "list = ( ) ! ! ( +b6",
		},
		{
			name:    "a version that is too old",
			answers: []answer{stream(endOfList("5"), gone()), stream(added(object("b", 7)), endOfList("8"), hang())},
			want:    "list = ( ) list +b7 = (",
		},
		{
			name: "silent for longer than a server that sends bookmarks is",
			answers: []answer{
				stream(endOfList("5"), pause(time.Minute), frame("BOOKMARK", mark("6", "")), hang()),
				stream(added(object("b", 7)), hang()),
			},
			want: "list = ( = ) ( +b7",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				want := strings.Fields(c.want)
				got := liveness(t, &script{t: t, answers: c.answers}, len(want))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("published (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A program is ready only when the streams that its author's functions follow are complete.
// Each stream counts until the end of its first list, and no longer than it is followed.
func TestSyncTracker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tracker := follow.NewSyncTracker()
		ctx, cancel := context.WithCancel(follow.WithSyncTracker(t.Context(), tracker))
		defer cancel()
		requireUnsynced := func(what string, want int) {
			t.Helper()
			synctest.Wait()
			if got := unsyncedOf(tracker); len(got) != want {
				t.Errorf("%s: unsynced: %v, not %d", what, got, want)
			}
		}
		run := func(answers ...answer) (stop func()) {
			ctx, cancel := context.WithCancel(ctx)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range follow.Changes(ctx, &script{t: t, answers: answers}, things) {
				}
			}()
			return func() { cancel(); <-done }
		}
		requireWatching := func(what string, want bool) {
			t.Helper()
			synctest.Wait()
			if states := tracker.States(); len(states) != 1 || states[0].Watching != want || states[0].Stream != things {
				t.Errorf("%s: the states are %+v", what, states)
			}
		}
		requireUnsynced("nothing is followed", 0)
		stopFirst := run(stream(added(object("a", 1)), pause(10*time.Second), endOfList("5"), pause(time.Minute), gone()), stream(hang()))
		requireUnsynced("the list is under way", 1)
		time.Sleep(11 * time.Second)
		requireUnsynced("the list is complete", 0)
		requireWatching("the list is complete", true)
		if at := tracker.States()[0].LastEvent; time.Since(at) != time.Second {
			t.Errorf("the last event came at %s", at)
		}
		time.Sleep(time.Minute)
		requireUnsynced("a later list is under way", 0)
		requireWatching("a later list is under way", false)
		stopSecond := run(stream(hang()))
		requireUnsynced("the same stream is followed once more", 1)
		stopSecond()
		requireUnsynced("the second one has ended", 0)
		stopFirst()
		if got := unsyncedOf(tracker); len(got) != 0 {
			t.Errorf("nothing is followed any more: %v", got)
		}
		for range follow.Changes(t.Context(), &script{t: t}, things) { // a context without a tracker
			break
		}
	})
}

// unsyncedOf returns the followed streams whose first list is not complete.
func unsyncedOf(tracker *follow.SyncTracker) (unsynced []wire.Stream) {
	for _, s := range tracker.States() {
		if !s.Synced {
			unsynced = append(unsynced, s.Stream)
		}
	}
	return unsynced
}
