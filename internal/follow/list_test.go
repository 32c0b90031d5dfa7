package follow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
)

// Regression: a server that ignores what asks for a streaming list, and just watches, was found
// by its silence only. One with an event every few seconds was never synced.
func TestBusyServerWithoutStreamingLists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event func(i int) part
		limit time.Duration
	}{
		"with modifications": {func(i int) part { return modified(object("a", 100+i)) }, 30 * time.Second},
		"with deletions": {func(i int) part {
			if i%2 == 0 {
				return deleted(object("a", 100+i))
			}
			return added(object("a", 100+i))
		}, 150 * time.Second},
		"with new objects": {func(i int) part { return added(object(fmt.Sprint("b", i), 100+i)) }, 150 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t}
				h := wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
					if r.Verb == wire.VerbList {
						s.answers = []answer{page("100", "", object("a", 1))}
						return s.Do(ctx, r)
					}
					parts := []part{added(object("a", 1))}
					for i := range 60 {
						parts = append(parts, pause(5*time.Second), c.event(i))
					}
					s.answers = []answer{stream(parts...)}
					return s.Do(ctx, r)
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				started := time.Now()
				for change := range follow.Changes(ctx, h, things) {
					if change.Type == follow.ChangeListed {
						break
					}
				}
				if d := time.Since(started); d > c.limit {
					t.Errorf("synced after %s; requests: %q", d, s.requests())
				}
			})
		})
	}
}

// Bugs: a server whose etcd cannot report the progress of watches answers each streaming list with an ERROR event, and a
// server that is new to a kind ends streaming lists early while others write. Streaming lists were tried again and again,
// with waits that grew to 30 seconds.
func TestStreamingListsThatTheServerEnds(t *testing.T) {
	t.Parallel()
	errorEvent := stream(frame("ERROR", status(500, "InternalError")))
	early := stream(added(object("a", 1)))
	refused := refuse(503, "ServiceUnavailable")
	inPages := page("5", "", object("a", 1))
	for name, c := range map[string]struct {
		answers []answer
		want    []string
	}{
		"by an error event: all later lists come in pages": {
			[]answer{errorEvent, errorEvent, inPages, stream(gone())}, []string{"watch all", "watch all", "list", "watch from 5", "list"},
		},
		"without a reason: the next list is a streaming list": {
			[]answer{early, early, inPages, stream(gone())}, []string{"watch all", "watch all", "list", "watch from 5", "watch all"},
		},
		"in both ways": {
			[]answer{errorEvent, early, inPages, stream(gone())}, []string{"watch all", "watch all", "list", "watch from 5", "watch all"},
		},
		"and the server is away in between": {
			[]answer{early, refused, early, inPages, stream(gone())}, []string{"watch all", "watch all", "watch all", "list", "watch from 5", "watch all"},
		},
		"once": {
			[]answer{errorEvent, stream(endOfList("5"), gone())}, []string{"watch all", "watch all", "watch all"},
		},
		"by an error event with 410": {
			[]answer{stream(gone()), stream(gone()), stream(gone())}, []string{"watch all", "watch all", "watch all", "watch all"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, answers: append(c.answers, func(*wire.Request) (*wire.Response, error) { return nil, errStop })}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				for _, err := range follow.Changes(ctx, s, things) {
					if errors.Is(err, errStop) {
						break
					}
				}
				if diff := cmp.Diff(c.want, s.requests()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if i := slices.Index(c.want, "list"); i > 0 && i < len(s.times) && !s.times[i].Equal(s.times[i-1]) {
					t.Errorf("the list waited for %s", s.times[i].Sub(s.times[i-1]))
				}
			})
		})
	}
}

// errStop ends a script.
var errStop = errors.New("the script is at its end")

// The time that the consumer of a list takes is not the server's: a large list comes as one
// stream, however slow the consumer is.
func TestSlowConsumerOfAStreamingList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var parts []part
		for i := range 100 {
			parts = append(parts, pause(time.Second), added(object(fmt.Sprint("a", i), i+1)))
		}
		s := &script{t: t, answers: []answer{stream(append(parts, endOfList("200"), hang())...)}}
		for change, err := range follow.Changes(t.Context(), s, things) {
			if err != nil {
				t.Fatal(err)
			}
			if change.Type == follow.ChangeListed {
				break
			}
			time.Sleep(2 * time.Second)
		}
		if asked := s.requests(); len(asked) != 1 {
			t.Errorf("asked: %q", asked)
		}
	})
}

// Promise 4, on the level of bytes: an object whose metadata cannot be read is reported and
// skipped.
func TestUnreadableMetadataIsSkipped(t *testing.T) {
	t.Parallel()
	runScripts(t, []scripted{
		{
			name: "in a stream",
			answers: []answer{
				stream(added(object("a", 1)), added(`{"metadata":{"name":7}}`), added(object("b", 2)), endOfList("5"), hang()),
			},
			published: "+a1 ! +b2 =",
			asked:     []string{"watch all"},
		},
		{
			name: "in a page",
			answers: []answer{
				refuse(422, "Invalid"),
				page("5", "", object("a", 1), `{"metadata":{}}`, object("b", 2)),
			},
			published: "+a1 ! +b2 =",
			asked:     []string{"watch all", "list"},
		},
	})
}

// Regression: an existing object whose metadata cannot be read in a relist was reported as
// deleted, so that its owner's cleanup went on as if it were gone.
func TestUnreadableObjectIsNotMissingFromARelist(t *testing.T) {
	t.Parallel()
	before := stream(added(object("a", 1)), added(object("b", 2)), endOfList("5"), pause(time.Minute), gone())
	undecodable := `{"metadata":{"namespace":"default","name":"a","uid":7,"resourceVersion":"6"}}`
	unnamed := `{"metadata":{"namespace":"default","name":7,"uid":"a","resourceVersion":"6"}}`
	noNamespace := `{"metadata":{"namespace":7,"name":"a","uid":"a","resourceVersion":"6"}}`
	runScripts(t, []scripted{
		{
			name:      "in a streaming list: only what is missing is deleted",
			answers:   []answer{before, stream(added(undecodable), endOfList("9"), hang())},
			published: "+a1 +b2 = ! -b2? =",
			asked:     []string{"watch all", "watch all"},
		},
		{
			name:      "in pages",
			answers:   []answer{before, refuse(422, "Invalid"), page("9", "", undecodable), stream(modified(object("a", 10)), hang())},
			published: "+a1 +b2 = ! -b2? = ~a10",
			asked:     []string{"watch all", "watch all", "list", "watch from 9"},
		},
		{
			name: "its name cannot be read: nothing is missing, and the next list decides",
			answers: []answer{
				before, stream(added(unnamed), endOfList("9"), bookmark("10"), gone()),
				stream(added(object("a", 6)), endOfList("12"), hang()),
			},
			published: "+a1 +b2 = ! = ~a6 -b2? =",
			asked:     []string{"watch all", "watch all", "watch all"},
		},
		{
			name:      "its namespace cannot be read",
			answers:   []answer{before, stream(added(noNamespace), endOfList("9"), hang())},
			published: "+a1 +b2 = ! =",
			asked:     []string{"watch all", "watch all"},
		},
		{
			name: "what was known of it is no measure for what follows: the server was restored",
			answers: []answer{
				stream(added(object("a", 100)), endOfList("100"), gone()), stream(added(undecodable), endOfList("9"), modified(object("a", 10)), hang()),
			},
			published: "+a100 = ! = ~a10",
			asked:     []string{"watch all", "watch all"},
		},
	})
}
