package controller

import (
	"context"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// restorationSignal signals that a server was restored from a backup. Restorations that follow one
// another before the signal is received count as one.
type restorationSignal chan struct{}

func newRestorationSignal() restorationSignal { return make(restorationSignal, 1) }

// record signals a restoration. It does not block.
func (s restorationSignal) record() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// restorationRepair makes a controller correct after restorations. It forgets everything that is known by
// resource versions, because a restored server assigns versions twice. Then it reconciles all objects. A
// reconcile may have read a state that the restoration has undone. The state may come from a store whose
// changes do not concern this controller.
type restorationRepair struct {
	signal restorationSignal
	// forget holds functions that forget what is known by resource versions.
	forget []func()
	// hasFailed reports whether the last reconcile of an object failed.
	hasFailed func(kube.Key) bool
	// enqueueAll adds a trigger for each object: see [enqueuer.enqueueAll].
	enqueueAll func(newTrigger func(kube.Key) queue.Trigger)
}

// run repairs restorations until ctx ends.
func (r *restorationRepair) run(ctx context.Context) {
	for {
		select {
		case <-r.signal:
		case <-ctx.Done():
			return
		}
		for _, forget := range r.forget {
			forget()
		}
		r.enqueueAll(func(k kube.Key) queue.Trigger {
			t := queue.Trigger{Key: k, Priority: queue.Low, Cause: queue.Cause{Change: "a backup was restored"}}
			if r.hasFailed(k) {
				t.Priority = queue.High // which ends the back-off: what failed may succeed now
			}
			return t
		})
	}
}
