package controller

import (
	"context"

	"github.com/yare-go/yare/controller/internal/queue"
)

// restoration signals that a server was restored from a backup. Restorations that follow one
// another before the signal is received count as one.
type restoration chan struct{}

func newRestoration() restoration { return make(restoration, 1) }

// record signals a restoration. It does not block.
func (r restoration) record() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// repairRestorations repairs, until ctx ends, what restorations have done to the controller: it
// forgets what is known by resource versions, which a restored server assigns once more, and
// reconciles all objects. A reconcile may have read a store that showed what the restoration has
// undone, and the changes of that store need not concern this controller.
func (e *engine) repairRestorations(ctx context.Context) {
	for {
		select {
		case <-e.restoration:
		case <-ctx.Done():
			return
		}
		e.applies.Forget()
		e.echoes.forget()
		e.adoption.forget()
		for k := range e.keys() {
			t := queue.Trigger{Key: k, Priority: queue.Low, Cause: queue.Cause{Change: "a backup was restored"}}
			if e.failures.has(k) {
				t.Priority = queue.High // which ends the back-off: what failed may succeed now
			}
			e.queue.Add(t)
		}
	}
}
