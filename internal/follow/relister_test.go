package follow_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/follow"
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
		{"while the list is under way", []answer{stream(added(object("a", 90)), pause(10*time.Second), endOfList("100"), hang()), list(hang())},
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
				var relister follow.Relister
				for _, after := range c.relists {
					time.AfterFunc(after, relister.Relist)
				}
				for range follow.Changes(ctx, s, things, follow.WithRelister(&relister)) {
				}
				if diff := cmp.Diff(c.want, s.requests()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Regression: a list that was asked for ended the streaming list that was under way. A list that takes longer than the
// time between two requests was never complete.
func TestRelisterDoesNotEndAList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow []part
		for i := range 9 {
			slow = append(slow, pause(10*time.Second), added(object(string(rune('a'+i)), 10+i)))
		}
		again := stream(added(object("a", 90)), endOfList("120"), hang())
		s := &script{t: t, answers: []answer{stream(append(slow, endOfList("100"), hang())...), again}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var relister follow.Relister
		for after := 5 * time.Second; after < 90*time.Second; after += 30 * time.Second {
			time.AfterFunc(after, relister.Relist)
		}
		var listed []string
		for change, err := range follow.Changes(ctx, s, things, follow.WithRelister(&relister)) {
			if err == nil && change.Type == follow.ChangeListed {
				listed = append(listed, change.ResourceVersion)
			}
		}
		if diff := cmp.Diff([]string{"100", "120"}, listed); diff != "" {
			t.Errorf("the complete lists (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"watch all", "watch all"}, s.requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// A consumer can ask whether the server has lost what the stream has shown. The watch is reopened and probed. If
// nothing is lost, nothing is listed.
func TestProbe(t *testing.T) {
	t.Parallel()
	list := stream(added(object("a", 90)), endOfList("100"), hang())
	for _, c := range []struct {
		name  string
		probe answer
		want  []string
		// probes is the number of probes. A second one shows that no deletion is on its way.
		probes int
	}{
		{"nothing is lost", page("100", "", object("a", 90)), []string{"watch all", "watch from 100"}, 1},
		{"the server is at a lower version", page("60", ""), []string{"watch all", "watch from 100", "watch all"}, 1},
		{"the newest object is lost", page("120", ""), []string{"watch all", "watch from 100", "watch all"}, 2},
	} {
		for when, after := range map[string]time.Duration{"while the watch is open": 10 * time.Second, "while the list is under way": time.Millisecond} {
			t.Run(c.name+", asked for "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					first := stream(pause(time.Second), added(object("a", 90)), endOfList("100"), hang())
					s := &script{t: t, answers: []answer{first, stream(hang()), list}, probe: c.probe}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					var relister follow.Relister
					time.AfterFunc(after, relister.Probe)
					for range follow.Changes(ctx, s, things, follow.WithRelister(&relister)) {
					}
					if diff := cmp.Diff(c.want, s.requests()); diff != "" || s.probeCount() != c.probes {
						t.Errorf("%d probes; requests (-want +got):\n%s", s.probeCount(), diff)
					}
				})
			})
		}
	}
}
