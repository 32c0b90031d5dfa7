package controller

import (
	"context"
	"time"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Observer receives what the controllers of a program do, for metrics and health. Several
// goroutines call its methods, which must not block.
type Observer interface {
	// Subscribed is called by a controller once it has subscribed to all of its streams, which
	// need not be synced then. stats may be called from then on, at any time and by any
	// goroutine. After the controller has ended, stats returns the last ones.
	Subscribed(controller string, stats func() QueueStats)
	// Result is called with the result of every reconcile and cleanup, by its worker.
	Result(Result)
}

// QueueStats is a snapshot of the queue of one controller. An object that only waits for its
// next change is not in the queue.
type QueueStats struct {
	// Ready is the number of objects that wait for a worker. It is zero in a replica that does not lead, because no
	// object waits for a worker there.
	Ready int
	// Waiting is the number of objects that wait for a requeue, a delayed trigger or the end of a
	// back-off. In a replica that does not lead, all objects of the queue wait.
	Waiting int
	// Running is the number of objects that are being reconciled.
	Running int
	// Failing is the number of objects whose last reconcile failed and is retried. A failure that [IsTerminal] reports is
	// not.
	Failing int
	// Oldest is the longest time that an object in Ready has been waiting.
	Oldest time.Duration
	// LongestRunning is how long the reconcile function that was called first of those that have not returned has been
	// running.
	LongestRunning time.Duration
	// Retries counts the reconciles that failed and are retried, since the start.
	Retries uint64
	// Triggers counts the triggers since the start. Several triggers can lead to one reconcile.
	Triggers uint64
}

// detailObserver is an [Observer] that also receives the requests of reconciles, and the changes of the watched kinds.
// The recorder of package operator/livepage implements it. Several goroutines call its methods, which must
// not block and must not keep the bodies of requests and answers.
type detailObserver interface {
	// ObserveRequest is called after each request of a reconcile of the object key. before is the object of a write as
	// it was known before the write. before is not certain for a read.
	ObserveRequest(
		controller string, key kube.Key, r *wire.Request, before cache.KnownState, response *wire.Response, err error,
	)
	// ObserveChange is called with each change of an object of r, unless the object existed before the program started.
	// Each controller that watches the object reports the change.
	ObserveChange(r wire.Resource, change cache.Change)
}

// detailObserverOf returns observer, or nil if observer does not receive requests and changes.
func detailObserverOf(observer Observer) detailObserver {
	details, _ := observer.(detailObserver)
	return details
}

// observedRequests passes the requests of one reconcile to an observer.
type observedRequests struct {
	next       wire.Handler
	observer   detailObserver
	controller string
	key        kube.Key
	view       *cache.View
}

// Do serves one request.
func (h *observedRequests) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	var before cache.KnownState
	if r.Verb.IsWrite() && r.Name != "" {
		before = h.view.KnownState(r.Ref())
	}
	response, err := h.next.Do(ctx, r)
	h.observer.ObserveRequest(h.controller, h.key, r, before, response, err)
	return response, err
}
