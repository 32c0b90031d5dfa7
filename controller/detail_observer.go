package controller

import (
	"context"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// detailObserver is an [Observer] that also receives the requests of reconciles, and the changes of the watched kinds.
// livepage.Recorder, which belongs to package operator, implements it. Several goroutines call its methods, which must not block and must not keep
// the bodies of requests and answers.
type detailObserver interface {
	// ObserveRequest is called after each request of a reconcile of the object key. before is the object of a write as
	// it was known before the write. before is not certain for a read.
	ObserveRequest(controller string, key kube.Key, r *wire.Request, before cache.KnownState, response *wire.Response, err error)
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
