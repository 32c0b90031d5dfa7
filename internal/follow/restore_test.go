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

// An API server whose etcd was restored from a backup does not refuse a watch from a later
// version than its own: it is silent until then (TestWatchFromTheFuture). Everything in between
// was lost, for as long as the server took. So a silent watch is probed once after an
// interruption.
func TestRestoredServerIsFound(t *testing.T) {
	t.Parallel()
	first := stream(added(object("a", 90)), added(object("b", 100)), endOfList("100"), broken())
	relist := stream(added(object("a", 50)), endOfList("60"), hang())
	for _, c := range []struct {
		name      string
		answers   []answer // until the watch that stays silent
		probe     answer
		published string // from the report of the probe on
	}{
		{
			name: "its version is lower", answers: []answer{first, stream(hang())},
			probe: page("60", ""), published: "! ~a50 -b100? =",
		},
		{
			name:    "its version is lower, and the newest object is the same",
			answers: []answer{stream(added(object("a", 90)), endOfList("100"), broken()), stream(hang())},
			probe:   page("95", "", object("a", 90)), published: "! ~a50 =",
		},
		{
			name: "its version is lower, and there was no object", answers: []answer{stream(endOfList("100"), broken()), stream(hang())},
			probe: page("60", ""), published: "! +a50 =",
		},
		{
			name: "it was away for a while", answers: []answer{first, refuse(503, ""), refuse(503, ""), stream(hang())},
			probe: page("60", ""), published: "! ~a50 -b100? =",
		},
		{
			name: "its watch ended in good order, but before it was asked to",
			answers: []answer{
				stream(added(object("a", 90)), added(object("b", 100)), endOfList("100"), pause(time.Minute)), stream(hang()),
			},
			probe: page("60", ""), published: "! ~a50 -b100? =",
		},
		{
			name:    "it has passed the version, and the newest object is not there",
			answers: []answer{first, stream(hang())},
			probe:   page("120", ""), published: "! ~a50 -b100? =",
		},
		{
			name:    "it has passed the version, and the newest object is older",
			answers: []answer{first, stream(hang())},
			probe:   page("120", "", object("b", 70)), published: "! ~a50 -b100? =",
		},
		{
			name:    "it has passed the version, and the newest object has changed without an event",
			answers: []answer{stream(added(object("b", 90)), endOfList("100"), broken()), stream(hang())},
			probe:   page("120", "", object("b", 95)), published: "! +a50 -b90? =",
		},
		{
			name:    "it has passed the version, and another object has the name",
			answers: []answer{first, stream(hang())},
			probe:   page("120", "", object("b/other", 70)), published: "! ~a50 -b100? =",
		},
		{
			name: "it has passed the version, and a deleted object is back",
			answers: []answer{
				stream(added(object("a", 90)), added(object("b", 95)), endOfList("100"), deleted(object("b", 101)), broken()), stream(hang()),
			},
			probe: page("120", "", object("b", 95)), published: "! ~a50 =",
		},
		{
			// Found by FuzzFollow: events that the stream had shown before kept the probe from finding the
			// loss.
			name: "it repeats events that were shown within a list with an earlier version",
			answers: []answer{
				stream(added(object("a", 90)), modified(object("b", 95)), modified(object("b", 100)), endOfList("90"), broken()),
				stream(modified(object("b", 95)), hang()),
			},
			probe: page("95", "", object("b", 95)), published: "! ~a50 -b100? =",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, answers: append(c.answers, relist), probe: c.probe}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				want := strings.Fields(c.published)
				lists := 0
				published := collect(ctx, s, func(published []string) bool {
					if published[len(published)-1] == "=" {
						lists++
					}
					return lists == 2
				})
				if len(published) < len(want) {
					t.Fatalf("published: %q", published)
				}
				if diff := cmp.Diff(want, published[len(published)-len(want):]); diff != "" {
					t.Errorf("published (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What a probe asks: one list of one object, its metadata only, from the present state, and
// within the selection of the stream.
func TestProbeRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{
			stream(added(object("a", 100)), added(object("b", 90)), endOfList("100"), broken()), stream(hang()),
		}, probe: page("100", "", object("a", 100))}
		selected := things
		selected.LabelSelector, selected.FieldSelector = "app=web", "spec.size=7"
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range follow.Changes(ctx, s, selected) {
		}
		if len(s.probes) != 1 {
			t.Fatalf("%d probes", len(s.probes))
		}
		r := s.probes[0]
		if r.Namespace != "default" || r.Representation != wire.MetadataOnly {
			t.Errorf("namespace %q, representation %q", r.Namespace, r.Representation)
		}
		want := "fieldSelector=spec.size%3D7%2Cmetadata.name%3Da&labelSelector=app%3Dweb&limit=1"
		if diff := cmp.Diff(want, r.Query.Encode()); diff != "" {
			t.Errorf("query (-want +got):\n%s", diff)
		}
	})
}

// A program at rest sends no request but its watches. A silent watch is probed only after an
// interruption, and once.
func TestProbesAreRare(t *testing.T) {
	t.Parallel()
	list := func(then ...part) answer {
		return stream(append([]part{added(object("a", 1)), endOfList("5")}, then...)...)
	}
	healthy := page("9", "", object("a", 1))
	// due ends a watch when the server was asked to end it.
	due := func(r *wire.Request) (*wire.Response, error) {
		d, err := time.ParseDuration(r.Query.Get("timeoutSeconds") + "s")
		if err != nil {
			return nil, err
		}
		return stream(pause(d))(r)
	}
	for _, c := range []struct {
		name    string
		answers []answer
		probe   answer
		probes  int
	}{
		{"a silent watch", []answer{list(hang())}, healthy, 0},
		{"watches that end when they are asked to", []answer{list(broken()), due, due, due}, healthy, 1},
		{"an interruption", []answer{list(broken()), due, due}, healthy, 1},
		{"two interruptions", []answer{list(broken()), stream(pause(time.Minute), broken()), due}, healthy, 2},
		{"an interruption that ends the silence", []answer{list(broken()), stream(pause(time.Second), modified(object("a", 6)), hang())}, healthy, 0},
		{"events that were shown before the end of the list", []answer{stream(added(object("a", 6)), endOfList("5"), broken()), stream(modified(object("a", 6)), hang())}, page("9", "", object("a", 6)), 1},
		{"an interruption before the probe", []answer{list(broken()), stream(pause(5*time.Second), broken()), due}, healthy, 1},
		{"an object that was not known", []answer{stream(endOfList("5"), broken()), due}, page("9", ""), 1},
		{"an object that has changed, whose event is on its way", []answer{list(broken()), due}, page("9", "", object("a", 7)), 1},
		// A deletion on its way passed for a restoration.
		{"a deletion whose event is on its way", []answer{list(broken()), stream(pause(15*time.Second), deleted(object("a", 7)), hang())}, page("9", ""), 1},
		{"a deletion that stands", []answer{list(deleted(object("a", 6)), broken()), due}, page("9", ""), 1},
		{"an object that was made anew, whose event is on its way", []answer{list(deleted(object("a", 6)), broken()), due}, page("9", "", object("a/new", 8)), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answers := c.answers
				for range 10 {
					answers = append(answers, due)
				}
				s := &script{t: t, answers: answers, probe: c.probe}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				lists := 0
				for change := range follow.Changes(ctx, s, things) {
					if change.Type == follow.ChangeListStarted {
						lists++
					}
				}
				if n := s.probeCount(); n != c.probes || lists != 1 {
					t.Errorf("%d probes and %d lists; requests: %q", n, lists, s.requests())
				}
			})
		})
	}
}

// A probe that gets no answer is repeated, less and less often.
func TestProbeIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{
			stream(added(object("a", 100)), endOfList("100"), broken()), stream(hang()),
			stream(added(object("a", 50)), endOfList("60"), hang()),
		}}
		s.probe = func(r *wire.Request) (*wire.Response, error) {
			if s.probeCount() < 4 {
				return nil, statusError(r, 503, "")
			}
			return page("60", "")(r)
		}
		published := collect(t.Context(), s, enough(6))
		if diff := cmp.Diff(strings.Fields("+a100 = ! ! ~a50 ="), published); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
}
