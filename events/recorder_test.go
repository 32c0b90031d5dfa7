package events_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube/wire"
)

func TestFirstOccurrenceIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("example.com/web")
		_, end := run(t, r, s)
		now := time.Now()
		r.Warning(pod("web-0"), "ImageMissing", "Pull", "no image %q", "nginx")
		synctest.Wait()
		e := s.onlyEvent(t)
		if e.Namespace != "default" || !strings.HasPrefix(e.Name, "web-0.") || !e.EventTime.Time.Equal(now) || e.Series != nil ||
			e.ReportingController != "example.com/web" || !strings.HasPrefix(e.ReportingInstance, "example.com/web-") ||
			e.Type != "Warning" || e.Reason != "ImageMissing" || e.Action != "Pull" || e.Note != `no image "nginx"` {
			t.Errorf("the event is %+v", e)
		}
		if want := (corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "web-0", UID: "u-1", ResourceVersion: "7"}); e.Regarding != want {
			t.Errorf("it is about %+v", e.Regarding)
		}
		if e.APIVersion != "events.k8s.io/v1" || e.Kind != "Event" {
			t.Errorf("it is a %s %s", e.APIVersion, e.Kind)
		}
		end()
		s.check(t, "0s create")
	})
}

// A series counts repetitions. It is written at growing intervals and when it is over. The next
// occurrence is a new event.
func TestRepetitionsAreASeries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		_, end := run(t, r, s)
		r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		time.Sleep(500 * time.Millisecond) // never at the instant of a write
		for range 100 {
			time.Sleep(time.Second)
			r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		}
		time.Sleep(10 * time.Minute)
		s.check(t, "0s create", "10s patch x10", "30s patch x30", "1m10s patch x70", "2m30s patch x101")
		e := s.onlyEvent(t)
		if want := s.since.Add(100*time.Second + 500*time.Millisecond); !e.Series.LastObservedTime.Time.Equal(want) {
			t.Errorf("it was seen last at %s, not %s", e.Series.LastObservedTime, want)
		}
		if open := r.Stats().Open; open != 0 {
			t.Errorf("%d series are open", open)
		}
		r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		synctest.Wait()
		if len(s.events(t)) != 2 {
			t.Errorf("there are %d events", len(s.events(t)))
		}
		end()
		if got, want := r.Stats(), (events.Stats{Recorded: 102, Writes: 6}); got != want {
			t.Errorf("the figures are %+v, not %+v", got, want)
		}
	})
}

// A series of hours is written often enough that the cluster does not drop the series. Its end
// is written although the interval is long by then.
func TestLongSeries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		_, end := run(t, r, s)
		defer end()
		for range 3 * 60 {
			r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
			time.Sleep(time.Minute)
		}
		time.Sleep(7 * time.Minute)
		if e := s.onlyEvent(t); e.Series.Count != 180 {
			t.Errorf("it was counted %d times", e.Series.Count)
		}
		if n := len(s.requests(t)); n < 10 || n > 16 {
			t.Errorf("there were %d requests:\n%s", n, strings.Join(s.requests(t), "\n"))
		}
	})
}

func TestDifferentOccurrencesAreDifferentEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		_, end := run(t, r, s)
		other := pod("web-0")
		other.UID = "u-2" // another object with the same name
		r.Normal(pod("web-0"), "Scaled", "Scale", "to 1")
		r.Normal(pod("web-0"), "Scaled", "Scale", "to 2")
		r.Warning(pod("web-0"), "Scaled", "Scale", "to 1")
		r.Normal(pod("web-0"), "Shrunk", "Scale", "to 1")
		r.Normal(pod("web-0"), "Scaled", "Resize", "to 1")
		r.Normal(other, "Scaled", "Scale", "to 1")
		newer := pod("web-0")
		newer.ResourceVersion = "8"
		r.Normal(newer, "Scaled", "Scale", "to 1") // the same as the first
		synctest.Wait()
		end()
		if len(s.events(t)) != 6 {
			t.Errorf("there are %d events, not 6", len(s.events(t)))
		}
	})
}

func TestNotesThatAreAlwaysNewAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		_, end := run(t, r, s)
		for i := range 100 {
			r.Normal(pod("web-0"), "Seen", "Look", "at %d", i)
		}
		end()
		total := 0
		for _, e := range s.events(t) {
			total++
			if e.Series != nil {
				total += int(e.Series.Count) - 1
			}
		}
		if len(s.events(t)) != 8 || total != 100 {
			t.Errorf("there are %d events of %d occurrences", len(s.events(t)), total)
		}
	})
}

// A write whose fate is unknown does not lead to a second event.
func TestUnknownFate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		var lost *wire.Request
		h := wire.HandlerFunc(func(ctx context.Context, q *wire.Request) (*wire.Response, error) {
			response, err := s.Do(ctx, q)
			if lost == nil {
				lost = q
				return nil, &wire.Error{Verb: q.Verb, Unknown: true, Err: errors.New("connection reset")}
			}
			return response, err
		})
		_, end := run(t, r, h)
		r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		time.Sleep(time.Minute)
		r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		synctest.Wait()
		end()
		s.check(t, "0s create", "1s create exists", "1m0s patch x2")
		s.onlyEvent(t)
	})
}

func TestServerThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		s.failIf(func(_ *wire.Request) error {
			if time.Since(s.since) < 10*time.Second {
				return &wire.Error{Err: errors.New("connection refused")}
			}
			return nil
		})
		_, end := run(t, r, s)
		for range 5 {
			r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		}
		time.Sleep(time.Minute)
		end()
		s.check(t, "0s create failed", "1s create failed", "3s create failed", "7s create failed", "15s create x5")
		if d := r.Stats().Dropped; d != 0 {
			t.Errorf("%d were dropped", d)
		}
	})
}

// An event that the cluster has dropped in the meantime is created again.
func TestEventsThatTheClusterDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		_, end := run(t, r, s)
		r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		time.Sleep(5 * time.Second)
		gone := s.onlyEvent(t)
		s.Remove("events", gone.Namespace, gone.Name, nil)
		r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		time.Sleep(time.Minute)
		end()
		s.check(t, "0s create", "10s patch not found", "10s create x2")
	})
}

func TestRefusedEventsAreDroppedAndLogged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code int
		asks int
	}{
		"forbidden":           {403, 1}, // also in a namespace that is being deleted
		"invalid":             {422, 1},
		"a server that fails": {500, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, r := newServer(), events.New("web")
				s.failIf(func(r *wire.Request) error { return fakeserver.Refusal(r, c.code, "") })
				logged, end := run(t, r, s)
				for range 3 {
					r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
					time.Sleep(time.Minute)
				}
				end()
				if len(s.requests(t)) != c.asks {
					t.Errorf("it was tried %d times, not %d", len(s.requests(t)), c.asks)
				}
				if d := r.Stats().Dropped; d != 3 {
					t.Errorf("%d were dropped", d)
				}
				if text := logged.String(); !strings.Contains(text, "events were dropped") || strings.Count(text, "\n") > 3 {
					t.Errorf("the log: %s", text)
				}
			})
		})
	}
}

// An event with which the server fails does not delay other events.
func TestBadEventDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		s.failIf(func(r *wire.Request) error {
			if strings.Contains(string(r.Body), "web-bad") {
				return fakeserver.Refusal(r, 500, metav1.StatusReasonInternalError)
			}
			return nil
		})
		_, end := run(t, r, s)
		for _, name := range []string{"web-bad", "web-1", "web-2"} {
			r.Normal(pod(name), "Scaled", "Scale", "scaled")
		}
		synctest.Wait()
		if len(s.events(t)) != 2 {
			t.Errorf("there are %d events", len(s.events(t)))
		}
		end()
	})
}

// Recording never blocks, whatever the server does, and memory is bounded.
func TestTooManyEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		stuck := make(chan struct{})
		h := wire.HandlerFunc(func(ctx context.Context, q *wire.Request) (*wire.Response, error) {
			<-stuck
			return s.Do(ctx, q)
		})
		logged, end := run(t, r, h)
		for i := range 3000 {
			r.Normal(pod(fmt.Sprint("web-", i)), "Scaled", "Scale", "scaled")
		}
		synctest.Wait()
		if got, want := r.Stats(), (events.Stats{Recorded: 3000, Dropped: 3000 - 2048, Open: 2048}); got != want {
			t.Errorf("the figures are %+v, not %+v", got, want)
		}
		close(stuck)
		synctest.Wait()
		// Series that the cluster knows are evicted for new ones.
		r.Normal(pod("another"), "Scaled", "Scale", "scaled")
		synctest.Wait()
		end()
		if len(s.events(t)) != 2049 {
			t.Errorf("there are %d events", len(s.events(t)))
		}
		if text := logged.String(); !strings.Contains(text, "dropped=952") {
			t.Errorf("the log: %s", text)
		}
	})
}

// Regression: a full table made room for a new note of an object by its former note, and kept a nil series. The process ended by a
// panic.
func TestFullTableEvictsTheSameObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		_, end := run(t, r, s)
		for i := range 2048 {
			r.Normal(pod(fmt.Sprint("web-", i)), "Scaled", "Scale", "scaled to 1")
			time.Sleep(10 * time.Millisecond) // web-0 has the oldest event
		}
		for _, note := range []int{2, 3} {
			r.Normal(pod("web-0"), "Scaled", "Scale", "scaled to %d", note)
			synctest.Wait()
		}
		end()
		if got := len(s.events(t)); got != 2050 {
			t.Errorf("there are %d events", got)
		}
	})
}

// At the end all pending events are written, within a bounded time.
func TestEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		_, end := run(t, r, s)
		for range 3 {
			r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
			synctest.Wait()
		}
		end()
		s.check(t, "0s create", "0s patch x3")
		r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		if d := r.Stats(); d.Dropped != 1 || d.Open != 0 {
			t.Errorf("after the end: %+v", d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := events.New("web")
		h := wire.HandlerFunc(func(ctx context.Context, q *wire.Request) (*wire.Response, error) {
			<-ctx.Done()
			return nil, &wire.Error{Verb: q.Verb, Err: ctx.Err()}
		})
		logged, end := run(t, r, h)
		r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		r.Normal(pod("web-1"), "Scaled", "Scale", "scaled")
		synctest.Wait()
		started := time.Now()
		end()
		if d := time.Since(started); d != 4*time.Second {
			t.Errorf("the end took %s", d)
		}
		if !strings.Contains(logged.String(), "dropped=2") {
			t.Errorf("the log: %s", logged)
		}
	})
}

func TestRecordedBeforeTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
		_, end := run(t, r, s)
		synctest.Wait()
		if err := r.Start(t.Context(), &controller.Runtime{}); err == nil {
			t.Error("it could be started twice")
		}
		end()
		s.check(t, "0s create")
	})
}

func TestLimitsOfTheAPI(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 2000)
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		_, end := run(t, r, s)
		r.Normal(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:web"}}, "x"+long, "", "x%s", long)
		end()
		e := s.onlyEvent(t)
		if e.Namespace != "default" || e.Regarding.Namespace != "" || !strings.HasPrefix(e.Name, "clusterrole.") {
			t.Errorf("the event %s/%s is about %+v", e.Namespace, e.Name, e.Regarding)
		}
		if len(e.Reason) != 127 || e.Action != e.Reason || len(e.Note) != 1023 || !utf8.ValidString(e.Reason+e.Note) {
			t.Errorf("reason %q, action %q, note %q", e.Reason, e.Action, e.Note)
		}
		if e.Type != "Normal" {
			t.Errorf("the type is %s", e.Type)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s, r := newServer(), events.New("web")
		_, end := run(t, r, s)
		r.Normal(pod(strings.Repeat("a", 253)), "", "", "")
		end()
		if e := s.onlyEvent(t); len(e.Name) != 253 || e.Reason == "" || e.Action == "" {
			t.Errorf("the event is %+v", e)
		}
	})
	for _, name := range []string{"", "not a name", "a/b/c"} {
		if _, err := events.New(name).Needs(); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	needs, err := events.New("web").Needs()
	if err != nil || len(needs.Access) != 1 || needs.Access[0].Resource.String() != "events.events.k8s.io" {
		t.Errorf("it needs %+v, %v", needs, err)
	}
}

// An event without an object is dropped, and does not panic.
func TestEventWithoutObject(t *testing.T) {
	t.Parallel()
	r := events.New("web")
	r.Normal(nil, "Scaled", "Scale", "scaled")
	r.Normal((*corev1.Pod)(nil), "Scaled", "Scale", "scaled")
	r.Normal(&corev1.Pod{}, "Scaled", "Scale", "scaled")
	if got, want := r.Stats(), (events.Stats{Recorded: 3, Dropped: 3}); got != want {
		t.Errorf("the figures are %+v", got)
	}
}

func BenchmarkEvent(b *testing.B) {
	r, p := events.New("web"), pod("web-0")
	for b.Loop() {
		r.Normal(p, "Scaled", "Scale", "scaled to %d", 3)
	}
}

// A recorder that was not given to the program wrote nothing, and warned only after two
// thousand events. The test is not parallel, because it replaces the default logger.
func TestRecorderThatIsNotStarted(t *testing.T) {
	logged := new(log)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
	defer slog.SetDefault(before)
	warnings := func() int {
		return strings.Count(logged.String(), "give their recorder to operator.Main")
	}
	for name, c := range map[string]struct {
		startedAfter time.Duration // 0: never
		warnings     int
	}{
		"never": {0, 1}, "in time": {time.Second, 0}, "late": {time.Minute, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			had := warnings()
			s, r := newServer(), events.New("web")
			r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
			end := func() {}
			if c.startedAfter > 0 {
				time.Sleep(c.startedAfter)
				_, end = run(t, r, s)
			}
			for range 10 {
				time.Sleep(time.Minute)
				r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
			}
			end()
			r.Normal(pod("web-0"), "Scaled", "Scale", "scaled")
			time.Sleep(time.Minute)
			if n := warnings() - had; n != c.warnings {
				t.Errorf("%s: %d warnings, not %d", name, n, c.warnings)
			}
		})
	}
}
