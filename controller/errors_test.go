package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/watch"
)

// Promise 15: a panic is an error of its object, wherever it happens; others go on, and the
// trigger is not lost.
func TestPanics(t *testing.T) {
	t.Parallel()
	// times is a function that panics so often.
	times := func(n int32) func() {
		var done atomic.Int32
		return func() {
			if done.Add(1) <= n {
				panic("at the disco")
			}
		}
	}
	reconciled := func(calls *journal) func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
		return func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			calls.record(g.Name)
			return controller.Done(), nil
		}
	}
	tests := map[string]func(calls *journal) *controller.Controller[Garden]{
		"reconcile": func(calls *journal) *controller.Controller[Garden] {
			trip := times(1)
			return controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
				if g.Name == "other" {
					trip()
				}
				calls.record(g.Name)
				return controller.Done(), nil
			})
		},
		"cleanup": func(calls *journal) *controller.Controller[Garden] {
			trip := times(1)
			return controller.New(reconciled(new(journal))).Finalizer("test.example.com/cleanup",
				func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
					trip()
					calls.record(g.Name)
					return controller.CleanupDone(), nil
				})
		},
		"mapper": func(calls *journal) *controller.Controller[Garden] {
			trip := times(4)
			return controller.New(reconciled(calls), controller.Reconciled(controller.When(never)),
				watches(func(p *Plant) []kube.Key {
					trip()
					return []kube.Key{{Namespace: "default", Name: p.Name}}
				}))
		},
		"mapper of a deletion": func(calls *journal) *controller.Controller[Garden] {
			trip := times(4)
			return controller.New(reconciled(calls), controller.Reconciled(controller.When(never)),
				watches(func(p *Plant) []kube.Key {
					trip()
					return []kube.Key{{Namespace: "default", Name: p.Name}}
				}, controller.When(func(c controller.Change) bool { return c.Type == controller.Deleted })))
		},
		"predicate": func(calls *journal) *controller.Controller[Garden] {
			return controller.New(reconciled(calls), controller.Reconciled(controller.When(func(controller.Change) bool { panic("at the disco") })))
		},
		"backoff policy": func(calls *journal) *controller.Controller[Garden] {
			var failed atomic.Bool
			return controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
				if g.Name == "other" && !failed.Swap(true) {
					return controller.Done(), errors.New("broken")
				}
				calls.record(g.Name)
				return controller.Done(), nil
			}).Backoff(func(*Garden, error, int) time.Duration { panic("at the disco") })
		},
		"function for results": func(calls *journal) *controller.Controller[Garden] {
			return controller.New(reconciled(calls), controller.OnResult(func(controller.Result) { panic("at the disco") }))
		},
		"own source": func(calls *journal) *controller.Controller[Garden] {
			trip := times(1)
			return controller.New(reconciled(calls), controller.Reconciled(controller.When(never)),
				controller.From(func(ctx context.Context, emit func(controller.Trigger)) error {
					<-time.After(time.Minute)
					trip()
					emit(controller.Trigger{All: true, Cause: "own"})
					return nil
				}))
		},
	}
	for name, build := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				create(t, c, garden("eden"))
				create(t, c, garden("other"))
				p := start(t, c, build(&calls))
				synctest.Wait()
				create(t, c, plant("eden"))
				create(t, c, plant("other"))
				synctest.Wait()
				remove(t, c, plant("eden"))
				remove(t, c, plant("other"))
				if name == "cleanup" {
					remove(t, c, garden("eden"))
					remove(t, c, garden("other"))
				}
				time.Sleep(time.Hour)
				seen := strings.Join(calls.drain(), " ")
				if !strings.Contains(seen, "eden") || !strings.Contains(seen, "other") {
					t.Errorf("reconciled: %q, want both objects", seen)
				}
				logs := p.log.lines(slog.LevelError)
				if len(logs) == 0 || !strings.Contains(logs[0], "panicked: at the disco") || !strings.Contains(logs[0], "stack=") || !strings.Contains(logs[0], "errors_test.go:") {
					t.Errorf("the log has: %q", logs)
				}
			})
		})
	}
}

func never(controller.Change) bool { return false }

// Promise 16: what was read was old: the call is made again soon, and the log does not
// mention it.
func TestConflicts(t *testing.T) {
	t.Parallel()
	stale := &wire.Error{Verb: wire.VerbPatch, Code: 409, Answer: metav1.Status{Reason: metav1.StatusReasonConflict, Message: "old"}}
	otherUID := &wire.Error{Verb: wire.VerbPatch, Code: 422, Answer: metav1.Status{Reason: metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "metadata.uid"}}}}}
	owned := &wire.Error{Verb: wire.VerbPatch, Code: 409, Answer: metav1.Status{Reason: metav1.StatusReasonConflict, Message: "owned",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.size"}}}}}
	exists := &wire.Error{Verb: wire.VerbCreate, Code: 409, Answer: metav1.Status{Reason: metav1.StatusReasonAlreadyExists, Message: "exists"}}
	invalid := &wire.Error{Verb: wire.VerbPatch, Code: 422, Answer: metav1.Status{Reason: metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "metadata.uid"}, {Field: "spec.size"}}}}}
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		err  error
		want controller.Outcome
	}{
		"of versions":               {stale, controller.OutcomeConflict},
		"of versions, wrapped":      {fmt.Errorf("measure: %w", stale), controller.OutcomeConflict},
		"of uids":                   {otherUID, controller.OutcomeConflict},
		"two at once":               {errors.Join(stale, otherUID), controller.OutcomeConflict},
		"joined with an error":      {errors.Join(stale, broken), controller.OutcomeError},
		"wrapped beside an error":   {fmt.Errorf("%w and %w", stale, broken), controller.OutcomeError},
		"of field managers":         {owned, controller.OutcomeError},
		"AlreadyExists":             {exists, controller.OutcomeError},
		"invalid in other ways":     {invalid, controller.OutcomeError},
		"terminal":                  {controller.Terminal(stale), controller.OutcomeTerminal},
		"terminal beside an error":  {errors.Join(controller.Terminal(broken), stale), controller.OutcomeError},
		"terminal, wrapped":         {fmt.Errorf("no: %w", controller.Terminal(broken)), controller.OutcomeTerminal},
		"two that are terminal":     {errors.Join(controller.Terminal(broken), controller.Terminal(stale)), controller.OutcomeTerminal},
		"nothing that is not there": {errors.Join(nil, broken), controller.OutcomeError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				begin := time.Now()
				var calls journal
				var tries int
				c := s.client()
				create(t, c, garden("eden"))
				p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
					if tries++; tries > 1 {
						calls.record("again")
						return controller.Done(), nil
					}
					return controller.RequeueAfter(time.Minute), test.err
				}, controller.OnResult(calls.result), controller.OnResult(func(controller.Result) {
					calls.record(time.Since(begin).String())
				})).Backoff(func(*Garden, error, int) time.Duration { return time.Hour }))
				time.Sleep(2 * time.Hour)
				results := calls.drainResults()
				if got := results[0].Outcome(); got != test.want || results[0].Attempt != 1 {
					t.Errorf("the outcome is %q at attempt %d, want %q at 1", got, results[0].Attempt, test.want)
				}
				var soon bool
				for _, r := range results[:1] {
					soon = r.Next > 0 && r.Next < time.Second
				}
				logs := len(p.log.lines(slog.LevelError))
				switch test.want {
				case controller.OutcomeConflict:
					if !soon || len(results) != 2 || logs != 0 {
						t.Errorf("next in %s, %d calls, %d lines; want soon, 2 and 0", results[0].Next, len(results), logs)
					}
				case controller.OutcomeTerminal:
					if len(results) != 1 || logs != 1 {
						t.Errorf("%d calls, %d lines; want 1 and 1", len(results), logs)
					}
				default:
					if results[0].Next < time.Hour || results[0].Next > 66*time.Minute || len(results) != 2 || logs != 1 {
						t.Errorf("next in %s, %d calls, %d lines; want an hour, 2 and 1", results[0].Next, len(results), logs)
					}
				}
			})
		})
	}
}

// A terminal error is logged once for each change of the object, and not retried. A change of an
// object that it depends on leads to a reconcile nevertheless.
func TestTerminal(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		p := start(t, c, controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			calls.record(fmt.Sprint("size ", g.Spec.Size))
			return controller.RequeueAfter(time.Minute), controller.Terminal(errors.New("the size is odd"))
		}, watches(func(*corev1.ConfigMap) []kube.Key { return []kube.Key{{Namespace: "default", Name: "eden"}} })))
		time.Sleep(time.Hour)
		for i := range 3 {
			create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("m", i)}})
			synctest.Wait()
		}
		if got := len(p.log.lines(slog.LevelError)); got != 1 {
			t.Errorf("%d lines, want 1: nobody has changed the object", got)
		}
		change := garden("eden")
		change.Spec.Size = 3
		apply(t, c, change)
		time.Sleep(time.Hour)
		if got := len(p.log.lines(slog.LevelError)); got != 2 {
			t.Errorf("%d lines after a change, want 2", got)
		}
		if diff := cmp.Diff([]string{"size 1", "size 1", "size 1", "size 1", "size 3"}, calls.drain()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// An error that repeats itself is logged at the first, second, fourth time, in one line without
// a stack.
func TestRepeatedErrorsAreLoggedSeldom(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var tries atomic.Int32
		c := s.client()
		create(t, c, garden("eden"))
		p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			tries.Add(1)
			return controller.Done(), errors.New("first line\nsecond line")
		}).Backoff(func(*Garden, error, int) time.Duration { return time.Minute }))
		// A delay is a minute and up to a tenth: these are at least 18 calls, and fewer than 32.
		time.Sleep(20 * time.Minute)
		logs := p.log.lines(slog.LevelError)
		if tries.Load() < 16 || len(logs) != 5 {
			t.Errorf("%d calls, and %d lines, want 5", tries.Load(), len(logs))
		}
		if want := `times=16`; !strings.Contains(logs[len(logs)-1], want) {
			t.Errorf("the last line is %s, want %s", logs[len(logs)-1], want)
		}
		if strings.Contains(strings.Join(logs, ""), "stack") {
			t.Error("there is a stack in the log")
		}
	})
}

// An object that does not fit its type is logged once for each change, and the other objects are reconciled.
func TestObjectThatDoesNotFitItsType(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		for i, size := range []any{"huge", 1.0} {
			s.mu.Lock()
			s.Store(resourceOf[Garden](t), "default", fmt.Sprint("g", i),
				object{"metadata": object{}, "spec": object{"size": size}})
			s.mu.Unlock()
		}
		p := start(t, c, controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			calls.record(g.Name)
			return controller.Done(), nil
		}, controller.Every(time.Minute)))
		time.Sleep(150 * time.Second)
		if got, want := p.log.lines(slog.LevelError), 1; len(got) != want {
			t.Errorf("the log has %q, want one line", got)
		}
		if diff := cmp.Diff([]string{"g1", "g1", "g1"}, calls.drain()); diff != "" {
			t.Errorf("reconciled (-want +got):\n%s", diff)
		}
	})
}

func resourceOf[T any, P kube.ObjectOf[T]](t *testing.T) wire.Resource {
	t.Helper()
	r, err := kube.ResourceOf[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reconcilesWithin returns how often an object is reconciled within a time if each reconcile returns err.
func reconcilesWithin(t *testing.T, d time.Duration, err error) int {
	t.Helper()
	var reconciles atomic.Int32
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			reconciles.Add(1)
			return controller.Done(), err
		}))
		time.Sleep(d)
	})
	return int(reconciles.Load())
}

// Bug: a Retry-After of ten days kept an object from being reconciled for ten days.
func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	if n := reconcilesWithin(t, 10*time.Minute, &wire.Error{Code: http.StatusServiceUnavailable, RetryAfter: 240 * time.Hour}); n < 2 {
		t.Errorf("%d reconciles within ten minutes", n)
	}
}

// Bug: of joined errors only the first one counted. So the Retry-After of a server was ignored beside another error, such as the
// timeout of the controller.
func TestRetryAfterOfJoinedErrors(t *testing.T) {
	t.Parallel()
	joined := fmt.Errorf("%w: %w", errors.New("the timeout has passed"), &wire.Error{Code: http.StatusServiceUnavailable, RetryAfter: 2 * time.Minute})
	if n := reconcilesWithin(t, time.Minute, joined); n != 1 {
		t.Errorf("%d reconciles within a Retry-After of two minutes", n)
	}
}

// A reconcile that waits for an object would keep its worker from all others.
func TestWaitForInAReconcileIsAnError(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		var waited atomic.Value
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			_, err := watch.Until(ctx, kube.Namespaced[Garden](c, g.Namespace), g.Name, func(*Garden) (bool, error) { return false, nil })
			waited.Store(err)
			return controller.Done(), nil
		}))
		synctest.Wait()
		if err, _ := waited.Load().(error); err == nil || !strings.Contains(err.Error(), "return controller.RequeueAfter") {
			t.Errorf("the error is %v", err)
		}
	})
}
