package controller_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// The waits after failures are those of the guide: half a second at most at first, up to twice as long each time, and five
// minutes at most. Half of each wait is random.
func TestDefaultBackoff(t *testing.T) {
	t.Parallel()
	for attempt, longest := range map[int]time.Duration{
		0: 500 * time.Millisecond, 1: 500 * time.Millisecond, 2: time.Second, 3: 2 * time.Second, 9: 128 * time.Second, 10: 256 * time.Second,
		11: 5 * time.Minute, 20: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		waits := make(map[time.Duration]bool)
		for range 100 {
			wait := controller.DefaultBackoff(attempt)
			if wait < longest/2 || wait > longest {
				t.Errorf("attempt %d: the wait is %s, want between %s and %s", attempt, wait, longest/2, longest)
			}
			waits[wait] = true
		}
		if len(waits) < 50 {
			t.Errorf("attempt %d: 100 waits have only %d values", attempt, len(waits))
		}
	}
}

// Each failure doubled the wait, also a failure of a call that a change had started. So an outage of a third of a second in
// which an object changed ten times led to a wait of five minutes.
func TestBurstOfChangesDoesNotLengthenTheBackoff(t *testing.T) {
	t.Parallel()
	conflict := &wire.Error{Code: http.StatusConflict, Answer: metav1.Status{Reason: metav1.StatusReasonConflict}}
	for name, test := range map[string]struct {
		err error
		// isOfMapFunction is true if the map function fails, and not the reconcile.
		isOfMapFunction bool
	}{
		"errors": {err: errors.New("down")}, "conflicts": {err: conflict}, "map function": {errors.New("down"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				c := s.client()
				var isDown atomic.Bool
				var succeeded atomic.Int64
				begin := time.Now()
				call := func() error {
					if isDown.Load() {
						return test.err
					}
					succeeded.Store(int64(time.Since(begin)))
					return nil
				}
				create(t, c, plant("rose"))
				start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
					if test.isOfMapFunction {
						return controller.Done(), nil
					}
					return controller.Done(), call()
				}), controller.New(doNothing[Garden], controller.Name("mapping"), controller.Watches(func(context.Context, *Plant, *kube.Client) ([]kube.Key, error) {
					if test.isOfMapFunction {
						return nil, call()
					}
					return nil, nil
				})))
				time.Sleep(time.Minute)
				isDown.Store(true)
				apply(t, c, garden("eden"))
				for i := range 10 {
					changed, rose := garden("eden"), plant("rose")
					changed.Spec.Size, rose.Spec.Height = i+10, i+10
					apply(t, c, changed)
					apply(t, c, rose)
					time.Sleep(34 * time.Millisecond)
				}
				isDown.Store(false)
				up := time.Since(begin)
				time.Sleep(time.Hour)
				// The longest wait is the first delay of a second, with its jitter.
				if waited := time.Duration(succeeded.Load()) - up; waited < 0 || waited > 1100*time.Millisecond {
					t.Errorf("the next call that succeeded was %s after an outage of 340ms", waited)
				}
			})
		})
	}
}
