package follow_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/watch"
	"github.com/yare-go/yare/yaretest"
)

// waiting is a call of WaitFor, and what done has seen.
type waiting struct {
	seen   []string
	object *thing
	err    error
	ended  chan struct{}
}

// waitFor waits until the thing a in the namespace default is as wanted: "none", or a size.
func waitFor(ctx context.Context, h wire.Handler, want string) *waiting {
	w := &waiting{ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		w.object, w.err = watch.Until(ctx, kube.Namespaced[thing](kube.NewClientFromHandler(h), "default"), "a", func(o *thing) (bool, error) {
			state := "none"
			if o != nil {
				state = strings.Repeat("|", o.Spec.Size)
			}
			w.seen = append(w.seen, state)
			if state == "|||||" {
				return false, errTooLarge
			}
			return state == want, nil
		})
	}()
	return w
}

var errTooLarge = errors.New("it is too large")

func TestWaitFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakeserver.New()
		store := func(size int) {
			s.Store(things.Resource, "default", "a", map[string]any{"spec": map[string]any{"size": size}})
		}
		s.Store(things.Resource, "default", "other", map[string]any{"spec": map[string]any{"size": 3}})
		expect := func(w *waiting, seen string, present bool) {
			t.Helper()
			<-w.ended
			if got := strings.Join(w.seen, " "); w.err != nil || got != seen || (w.object != nil) != present {
				t.Errorf("saw %q and returned %+v, %v; want %q", got, w.object, w.err, seen)
			}
		}
		w := waitFor(t.Context(), s, "|||")
		synctest.Wait()
		store(1)
		synctest.Wait()
		store(3)
		expect(w, "none | |||", true)

		expect(waitFor(t.Context(), s, "|||"), "|||", true)

		w = waitFor(t.Context(), s, "none")
		synctest.Wait()
		s.Remove("things", "default", "a", nil)
		expect(w, "||| none", false)

		expect(waitFor(t.Context(), s, "none"), "none", false)

		w = waitFor(t.Context(), s, "|||")
		synctest.Wait()
		store(5)
		if <-w.ended; !errors.Is(w.err, errTooLarge) || !strings.Contains(w.err.Error(), `wait for things.example.com "default/a"`) {
			t.Errorf("the error is %v", w.err)
		}
	})
}

// The version that WaitFor watches from expires while it cannot watch, and the object is deleted and
// made anew meanwhile.
func TestWaitForSurvivesAnExpiredVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakeserver.New()
		var away atomic.Bool
		s.Before(func(_ context.Context, r *wire.Request) error {
			if away.Load() {
				return statusError(r, 503, "ServiceUnavailable")
			}
			return nil
		})
		s.Store(things.Resource, "default", "a", map[string]any{"spec": map[string]any{"size": 1}})
		w := waitFor(t.Context(), s, "|||")
		synctest.Wait()
		away.Store(true)
		for _, stream := range s.Streams() {
			stream.Cut()
		}
		s.Remove("things", "default", "a", nil)
		s.Store(things.Resource, "default", "a", map[string]any{"spec": map[string]any{"size": 2}})
		s.Store(things.Resource, "default", "a", map[string]any{"spec": map[string]any{"size": 3}})
		s.Compact()
		time.Sleep(time.Minute)
		away.Store(false)
		if <-w.ended; w.err != nil || w.object.Spec.Size != 3 {
			t.Errorf("returned %+v, %v", w.object, w.err)
		}
	})
}

// The error has the cause of the context, and the failure that hid the state.
func TestWaitForEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, ended)
		defer cancel()
		s := fakeserver.New()
		s.Store(things.Resource, "default", "a", map[string]any{"spec": map[string]any{"size": "large"}})
		w := waitFor(ctx, s, "none")
		<-w.ended
		if _, isMisfit := errors.AsType[*wire.DecodeError](w.err); !errors.Is(w.err, ended) || !isMisfit || len(w.seen) > 0 {
			t.Errorf("saw %v of an object that cannot be decoded, error %v", w.seen, w.err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.Before(func(_ context.Context, r *wire.Request) error {
			return statusError(r, 403, metav1.StatusReasonForbidden)
		})
		if w = waitFor(ctx, s, "none"); true {
			<-w.ended
		}
		if !errors.Is(w.err, context.DeadlineExceeded) || !kube.IsForbidden(w.err) {
			t.Errorf("the error is %v", w.err)
		}
	})
}

func TestWaitForRefusesBadInput(t *testing.T) {
	t.Parallel()
	never := func(*thing) (bool, error) { panic("called") }
	c := kube.NewClientFromHandler(nil)
	one := kube.Namespaced[thing](c, "default")
	reason := errors.New("a worker waits with it")
	for want, call := range map[string]func() error{
		"the name is empty": func() error { _, err := watch.Until(t.Context(), one, "", never); return err },
		"use kube.Namespaced": func() error {
			_, err := watch.Until(t.Context(), kube.Everywhere[thing](c), "a", never)
			return err
		},
		"the namespace is empty": func() error {
			_, err := watch.Until(t.Context(), kube.Namespaced[thing](c, ""), "a", never)
			return err
		},
		reason.Error(): func() error {
			_, err := watch.Until(follow.WithoutWaiting(t.Context(), reason), one, "a", never)
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}

func TestWaitForOnTheServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	maps := kube.Namespaced[corev1.ConfigMap](cluster.Client(t), namespace)
	created := make(chan error, 1)
	live, err := watch.Until(t.Context(), maps, "late", func(m *corev1.ConfigMap) (bool, error) {
		if m == nil {
			go func() {
				_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}})
				created <- err
			}()
		}
		return m != nil, nil
	})
	if err != nil || live.Name != "late" || <-created != nil {
		t.Fatalf("waited for its creation: %+v, %v", live, err)
	}
	gone, err := watch.Until(t.Context(), maps, "late", func(m *corev1.ConfigMap) (bool, error) {
		if m != nil {
			return false, maps.Delete(t.Context(), "late")
		}
		return true, nil
	})
	if err != nil || gone != nil {
		t.Errorf("waited for its deletion: %+v, %v", gone, err)
	}
}

// Regression: a task waited for a kind that the server did not serve yet. The program was not ready meanwhile, and the
// rollout that would have brought the definition waited for the program.
func TestWaitForDoesNotAffectReadiness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tracker := follow.NewSyncTracker()
		ctx, cancel := context.WithCancel(follow.WithSyncTracker(t.Context(), tracker))
		w := waitFor(ctx, wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
			return nil, statusError(r, 404, "NotFound")
		}), "|")
		time.Sleep(time.Minute)
		if unsynced := unsyncedOf(tracker); len(unsynced) > 0 {
			t.Errorf("the program waits for %v", unsynced)
		}
		cancel()
		<-w.ended
	})
}
