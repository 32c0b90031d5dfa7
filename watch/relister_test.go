package watch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/watch"
)

// A consumer that learns from elsewhere of the loss of the server's state can ask for a
// fresh list, whatever the stream is doing. Each list begins after the request for it.
func TestRelister(t *testing.T) {
	t.Parallel()
	list := func(then ...part) answer {
		return stream(append([]part{added(object("a", 90)), endOfList("100")}, then...)...)
	}
	for _, c := range []struct {
		name    string
		answers []answer
		relists []time.Duration // when they are asked for
		want    []string
	}{
		{"while a watch is open", []answer{list(hang()), list(hang())}, []time.Duration{10 * time.Second},
			[]string{"watch all", "watch all"}},
		{"while the list is under way", []answer{stream(added(object("a", 90)), hang()), list(hang())},
			[]time.Duration{5 * time.Second}, []string{"watch all", "watch all"}},
		{"while the stream waits to be repeated", []answer{list(pause(time.Minute), broken()), list(hang())},
			[]time.Duration{time.Minute + 100*time.Millisecond}, []string{"watch all", "watch all"}},
		{"twice", []answer{list(hang()), list(hang()), list(hang())}, []time.Duration{10 * time.Second, 20 * time.Second},
			[]string{"watch all", "watch all", "watch all"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, answers: c.answers, probe: page("100", "", object("a", 90))}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				var relister watch.Relister
				for _, after := range c.relists {
					time.AfterFunc(after, relister.Relist)
				}
				for range watch.Follow(ctx, s, things, watch.WithRelister(&relister)) {
				}
				if diff := cmp.Diff(c.want, s.requests()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}
