package controller

import (
	"context"
	"errors"

	"github.com/yare-go/yare/controller/internal/adoption"
	"github.com/yare-go/yare/controller/internal/echo"
	"github.com/yare-go/yare/controller/internal/noop"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/controller/internal/relation"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// ownershipMover is an [adoption.Mover].
type ownershipMover interface {
	Handler(next wire.Handler, owner wire.Ref) wire.Handler
	Forget()
}

// pipeline makes the clients of reconciles.
type pipeline struct {
	// client is the client of the program, with the field manager of the controller.
	client *kube.Client
	view   *cache.View
	// mover is nil without former field managers.
	mover       ownershipMover
	noopChecker *noop.Checker
	adoption    *adoption.Guard
	echoes      *echo.Tracker
	// skipsOwnStatus is true with [SkipOwnStatus].
	skipsOwnStatus bool
	// subscriptions holds the subscriptions of all watched kinds.
	subscriptions []*subscription
	// reconciledKind is the reconciled kind, with the client of map functions.
	reconciledKind relation.ReconciledKind
	// streams are the streams of all watched kinds.
	streams echo.Streams
	enqueue func(queue.Trigger)
	// makeNextReadLive makes the next read of an object live: see [cache.Cache.RecordPossiblyGone].
	makeNextReadLive func(wire.Ref)
	uncachedLists    *uncachedLists
	// details receives the requests of reconciles. It is nil unless somebody observes them.
	details detailObserver
	// controller is the name of the controller.
	controller string
}

// clientFor returns the client of one reconcile, whose context is ctx.
func (p *pipeline) clientFor(
	ctx context.Context, key kube.Key, object wire.Ref, recorder *requestRecorder,
) *kube.Client {
	return p.client.InCluster(key.Cluster).With(func(below wire.Handler) wire.Handler {
		return p.handlers(ctx, below, key, object, recorder)
	})
}

// handlers returns the handlers of the client of one reconcile, above the handlers below. docs/architecture.md numbers
// all handlers of a request. A controller adds the numbers 1 to 6. A request passes from the first to the last:
//
//	1  requestRecorder      records the request for the result, and refuses a write after the end of the reconcile
//	   observedRequests     reports the request to the live page of the program, if there is one
//	2  adoption.ownerCheck  refuses owner references that Kubernetes forbids
//	   adoption.moveHandler moves the fields of former field managers before an apply, if there are any
//	3  noop.handler         answers an apply that would change nothing
//	4  adoption.handler     refuses an apply to an object that is not a child
//	5  echo.handler         records the versions that writes make
//	6  cache.handler        answers reads from the cache, and records the answers to writes
//	7… the handlers of the program (operator.addRequestHandlers), and those of kube.NewClient
//
// The echoes and the adoption stand below the no-op check, because a skipped apply makes no version and
// takes over no object. Each handler is a struct whose field next holds the next handler, so that a test
// can list the chain.
func (p *pipeline) handlers(
	ctx context.Context, below wire.Handler, key kube.Key, object wire.Ref, recorder *requestRecorder,
) wire.Handler {
	isTrigger := func(r wire.Resource, current *cache.KnownState) bool {
		return p.isTrigger(ctx, key, object, r, current)
	}
	next := p.view.Handler(below)
	var ownStatus echo.Target
	if p.skipsOwnStatus {
		ownStatus = echo.NewTarget(p.reconciledKind.Resource, key)
	}
	next = p.echoes.Handler(next, key, ownStatus, p.streams, p.enqueue)
	next = p.adoption.Handler(next, object, p.makeNextReadLive)
	next = p.noopChecker.Handler(next, isTrigger)
	if p.mover != nil {
		next = p.mover.Handler(next, object)
	}
	recorder.reportUncachedList = p.uncachedLists.report
	recorder.next = adoption.RefuseForbiddenOwners(next, object, Terminal)
	if p.details != nil {
		recorder.next = &observedRequests{
			next: recorder.next, observer: p.details, controller: p.controller, key: key, view: p.view,
		}
	}
	return recorder
}

// isTrigger reports whether a change to an object of resource r, whose known state is current, would trigger the
// reconcile of key. Predicates do not count: the author has decided that rejected changes do not matter.
func (p *pipeline) isTrigger(
	ctx context.Context, key kube.Key, object wire.Ref, r wire.Resource, current *cache.KnownState,
) bool {
	for _, sub := range p.subscriptions {
		if sub.watched.kind.Resource != r || sub.stream.Cluster != object.Cluster ||
			len(sub.watched.selectors) > 0 && !sub.contains(current.Record) {
			continue
		}
		// A map function receives an object in the representation of its own stream.
		content := current.Bytes
		switch {
		case sub.stream.Representation == wire.MetadataOnly:
			content = current.Metadata
		case current.Representation == wire.MetadataOnly:
			content = func() ([]byte, error) { return nil, errors.New("only the metadata is cached") }
		}
		keys, err := sub.relatedKeys(ctx, current.Record, content, p.reconciledKind)
		if err != nil {
			continue
		}
		for _, related := range keys {
			if related.Key == key && (related.UID == "" || related.UID == object.UID) {
				return true
			}
		}
	}
	return false
}
