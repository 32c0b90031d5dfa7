package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// signal is sent and received without a value. Several signals that are sent before the first one is received count as
// one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// send sends the signal. It does not block.
func (s signal) send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// doubtRepair makes a controller correct after a store was in doubt, because of a restoration or a contradiction. It
// forgets everything that is known by resource versions, because a restored server assigns versions twice. Then it
// reconciles all objects. A reconcile may have read a state that the restoration has undone. The state may come from a
// store whose changes do not concern this controller.
//
// The stores of a controller recover one after the other, within a minute or later. Reads of
// a store that has not recovered go to the server, which was restored a moment ago. So the reconciles of all objects
// wait until the last store has recovered, and so do all other reconciles of low priority: see [queue.Queue.HoldLow].
// Example of a controller with 100,000 WebApps that owns Deployments:
//
//	10:00:00  the store of WebApps has recovered, and that of Deployments is in doubt. A WebApp that somebody
//	          changes is reconciled, and reads its Deployment from the server
//	10:00:37  the store of Deployments has recovered. All WebApps are reconciled, and read from the stores
//
// A store that does not recover is not awaited for longer than maxDoubtWait: its kind may be forbidden or absent since
// the restoration. Its reads stay live. If it recovers later, all objects are reconciled once more.
type doubtRepair struct {
	// doubtSettled receives a signal when the doubt in a store is settled: see [cache.DoubtSettled].
	doubtSettled signal
	log          *slog.Logger
	// doubtWait returns how long reconciles of low priority wait at most: see [subscriptions.doubtWait].
	doubtWait func() time.Duration
	// doubtedStreams returns the streams whose stores are in doubt.
	doubtedStreams func() []string
	// releaseLow lets the queue hand out reconciles of low priority.
	releaseLow func()
	// forget holds functions that forget what is known by resource versions.
	forget []func()
	// isUnfinished reports whether the last reconcile of an object failed, or the object waits for finalizers of others.
	isUnfinished func(kube.Key) bool
	// enqueueAll adds a trigger for each object: see [enqueuer.enqueueAll].
	enqueueAll func(newTrigger func(kube.Key) queue.Trigger)
	// repaired receives a signal after each repair, when no store of the controller is awaited any more.
	repaired signal
}

const (
	// maxDoubtWait is how long reconciles of low priority wait for the list of a store in doubt. The lists begin within a
	// minute.
	maxDoubtWait = 5 * time.Minute
	// doubtCheckPeriod is the time between two checks of whether a store is in doubt. It is shorter than maxDoubtWait.
	doubtCheckPeriod = time.Minute
)

// run repairs the controller after each doubt, until ctx ends. wait is what doubtWait returned before the workers
// started: from then on they may wait for the end of a doubt.
func (r *doubtRepair) run(ctx context.Context, wait time.Duration) {
	for {
		nextCheck := doubtCheckPeriod
		if wait > 0 {
			nextCheck = min(nextCheck, wait)
		}
		isSettled := false
		select {
		case <-r.doubtSettled:
			isSettled = true
		case <-time.After(nextCheck):
		case <-ctx.Done():
			return
		}
		wasAwaited := wait > 0
		wait = r.doubtWait()
		if !isSettled && (wait > 0 || !wasAwaited) {
			continue
		}
		for _, forget := range r.forget {
			forget()
		}
		if wait > 0 {
			continue // the next store that recovers signals too
		}
		if doubted := r.doubtedStreams(); !isSettled && len(doubted) > 0 {
			r.log.Warn("a source is in doubt since the server was restored, and could not be listed since: reconciles do not wait for it any longer, and read its objects from the server",
				"streams", doubted, "waited", maxDoubtWait)
		}
		r.releaseLow()
		r.enqueueAll(func(k kube.Key) queue.Trigger {
			t := queue.Trigger{
				Key: k, Priority: queue.Low, Cause: queue.Cause{Change: "the cache was in doubt and was listed again"},
			}
			if r.isUnfinished(k) {
				t.Priority = queue.High // which ends the back-off: what failed may succeed now
			}
			return t
		})
		r.repaired.send()
	}
}
