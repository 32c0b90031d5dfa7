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
	// reconciled is the reconciled kind, with the client of map functions.
	reconciled relation.Kind
	// shown is what the streams of all watched kinds have shown.
	shown   echo.Streams
	enqueue func(queue.Trigger)
	// recordPossiblyGone makes the next read of an object live: see [cache.Cache.RecordPossiblyGone].
	recordPossiblyGone func(wire.Ref)
	// activity receives the requests of reconciles of the controller of that name. It is nil unless somebody observes them.
	activity   activityObserver
	controller string
}

// clientFor returns the client of one reconcile, whose context is ctx.
func (p *pipeline) clientFor(ctx context.Context, key kube.Key, self wire.Ref, trace *requestTrace) *kube.Client {
	return p.client.InCluster(key.Cluster).With(func(below wire.Handler) wire.Handler {
		return p.handlers(ctx, below, key, self, trace)
	})
}

// handlers returns the handlers of the client of one reconcile, above the handlers below. docs/architecture.md lists all
// handlers of a request, where adoption.Mover has no number. A controller adds the first seven of the list below. A request
// passes from the first to the last:
//
//  1. requestTrace records the request for the result, and refuses it after the end of the reconcile.
//  2. adoption.RefuseForbiddenOwners refuses owner references that Kubernetes forbids.
//  3. adoption.Mover, if there are former field managers, moves their fields before an apply.
//  4. noop.Checker answers an apply that would change nothing.
//  5. adoption.Guard refuses an apply to an object that is not a child.
//  6. echo.Tracker records the versions that writes make.
//  7. cache.View answers reads from the cache, and records the answers to writes.
//  8. Then come the handlers of the program (operator.addHandlers), and those of kube.NewClient.
//
// With the live page of package operator, observedRequests stands below requestTrace. It changes no request.
//
// The echoes and the adoption stand below the no-op check, because a skipped apply makes no version and
// takes over no object. Each handler is a struct whose field next holds the next handler, so that a test
// can list the chain.
func (p *pipeline) handlers(ctx context.Context, below wire.Handler, key kube.Key, self wire.Ref, trace *requestTrace) wire.Handler {
	isTrigger := func(r wire.Resource, live *cache.KnownState) bool { return p.triggersSelf(ctx, key, self, r, live) }
	next := p.view.Handler(below)
	var ownStatus echo.Target
	if p.skipsOwnStatus {
		ownStatus = echo.NewTarget(p.reconciled.Resource, key)
	}
	next = p.echoes.Handler(next, key, ownStatus, p.shown, p.enqueue)
	next = p.adoption.Handler(next, self, p.recordPossiblyGone)
	next = p.noopChecker.Handler(next, isTrigger)
	if p.mover != nil {
		next = p.mover.Handler(next, self)
	}
	trace.next = adoption.RefuseForbiddenOwners(next, self, Terminal)
	if p.activity != nil {
		trace.next = &observedRequests{next: trace.next, observer: p.activity, controller: p.controller, key: key, view: p.view}
	}
	return trace
}

// triggersSelf reports whether a change to the object live of resource r would trigger the reconcile of
// key. Predicates do not count: the author has decided that rejected changes do not matter.
func (p *pipeline) triggersSelf(ctx context.Context, key kube.Key, self wire.Ref, r wire.Resource, live *cache.KnownState) bool {
	for _, sub := range p.subscriptions {
		if sub.watched.kind.Resource != r || sub.stream.Cluster != self.Cluster || len(sub.watched.selectors) > 0 && !sub.contains(live.Record) {
			continue
		}
		// A map function receives an object in the representation of its own stream.
		object := live.Bytes
		switch {
		case sub.stream.Representation == wire.MetadataOnly:
			object = live.Metadata
		case live.Representation == wire.MetadataOnly:
			object = func() ([]byte, error) { return nil, errors.New("only the metadata is cached") }
		}
		keys, err := sub.relatedKeys(ctx, live.Record, object, p.reconciled)
		if err != nil {
			continue
		}
		for _, related := range keys {
			if related.Key == key && (related.UID == "" || related.UID == self.UID) {
				return true
			}
		}
	}
	return false
}
