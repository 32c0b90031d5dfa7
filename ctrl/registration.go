package ctrl

import (
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/yare-go/yare/internal/cache"
)

// event is a change of the stream of a selection, which is the number of that selection.
type event struct {
	cache.Change
	selection int
}

// registration is a handler with the events that wait for it. A goroutine decodes and hands out one event after the
// other, so that a slow handler stops neither a stream nor another handler. What waits is packed as in the store.
type registration struct {
	informer *informer
	handler  toolscache.ResourceEventHandler
	// period is how often the handler gets all objects again. It is zero for never.
	period time.Duration
	// synced is done when the handler has got all objects that existed at its start.
	synced *completion
	// streams are the subscriptions of the handler. informer.mu guards them.
	streams []*cache.Subscription

	mu      sync.Mutex
	waiting []event
	isEnded bool
	// arrived receives a value when events wait or the registration has ended.
	arrived chan struct{}
}

// HasSynced reports whether the handler has got all objects that existed at its start.
func (r *registration) HasSynced() bool { return toolscache.IsDone(r.synced) }

// HasSyncedChecker returns a checker that is done when the handler has got all objects that existed at its start.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker { return r.synced }

// add lets an event wait. It is called by a stream, and does not block.
func (r *registration) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isEnded {
		r.waiting = append(r.waiting, e)
		r.wake()
	}
}

// wake makes run look.
func (r *registration) wake() {
	select {
	case r.arrived <- struct{}{}:
	default:
	}
}

// end closes the subscriptions and drops what waits. informer.mu is held.
func (r *registration) end() {
	for _, s := range r.streams {
		s.Close()
	}
	r.streams = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isEnded, r.waiting = true, nil
	r.wake()
}

// take returns all events that wait. It returns false after the end.
func (r *registration) take() ([]event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.waiting
	r.waiting = nil
	return events, !r.isEnded
}

// run hands out events until the end.
func (r *registration) run() {
	var again <-chan time.Time
	if r.period > 0 {
		ticker := time.NewTicker(r.period)
		defer ticker.Stop()
		again = ticker.C
	}
	for {
		select {
		case <-again:
			r.resync()
			continue
		case <-r.arrived:
		}
		events, isOpen := r.take()
		if !isOpen {
			return
		}
		for n := range events {
			if r.hasEnded() {
				return
			}
			r.handle(events[n])
			events[n] = event{} // the object can be forgotten
		}
	}
}

func (r *registration) hasEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isEnded
}

// handle hands out one event.
func (r *registration) handle(e event) {
	switch e.Type {
	case cache.Added:
		if object := r.informer.decodeOrLog(e.AfterObject(), e.selection); object != nil {
			r.handler.OnAdd(object, e.Initial)
		}
	case cache.Modified:
		before, after := r.informer.decodeOrLog(e.BeforeObject(), e.selection), r.informer.decodeOrLog(e.AfterObject(), e.selection)
		switch {
		case after == nil:
		case before == nil:
			r.handler.OnAdd(after, false) // the former version did not fit the type
		default:
			r.handler.OnUpdate(before, after)
		}
	case cache.Deleted:
		object := r.informer.decodeOrLog(e.BeforeObject(), e.selection)
		switch {
		case object == nil:
		case e.Missed:
			key := client.ObjectKeyFromObject(object)
			r.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key.String(), Obj: object})
		default:
			r.handler.OnDelete(object)
		}
	case cache.Synced:
		r.synced.completeOne()
	}
}

// resync hands out all objects as updates without a difference.
func (r *registration) resync() {
	for n, o := range r.informer.all {
		if r.hasEnded() {
			return
		}
		if object := r.informer.decodeOrLog(o, n); object != nil {
			r.handler.OnUpdate(object, object)
		}
	}
}
