package watch

import (
	"context"
	"iter"
	"sync"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Event is one of Added, Modified, Deleted and Synced.
type Event[T any] interface{ event(*T) }

type (
	// Added is an object that the sequence has not shown before, or not since its deletion.
	Added[T any] struct{ Object *T }

	// Modified is a newer state of an object that the sequence has shown.
	Modified[T any] struct{ Object *T }

	// Deleted is an object that was deleted, or no longer matches the selectors.
	Deleted[T any] struct {
		// Object is the last state. If Stale is true, it has only kind, namespace, name, uid,
		// and the last resource version that was seen.
		Object *T
		// Stale is true if the last state is not known: the object was missing from a later list, or
		// its deletion was observed with a state that does not fit T.
		Stale bool
	}

	// Synced follows the last object of the initial state. It comes once.
	Synced[T any] struct{}
)

func (Added[T]) event(*T)    {}
func (Modified[T]) event(*T) {}
func (Deleted[T]) event(*T)  {}
func (Synced[T]) event(*T)   {}

// Events watches the objects that api names and selectors select, until ctx ends or the
// consumer leaves the loop. An error comes with a nil event, and reports a failure that Events is
// dealing with. The sequence goes on after it. Only an error of api itself, or of a selector,
// ends the sequence.
//
// An object that does not fit T is reported as a [*wire.DecodeError] each time it changes. Its
// older state never stands for the newer one. The objects belong to the caller. A sequence is
// for one goroutine.
func Events[T any](ctx context.Context, api kube.API[T], selectors ...kube.Selector) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		streams, err := api.Streams(selectors...)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(streams) == 1 {
			streamEvents(ctx, api, streams[0])(yield)
			return
		}
		mergeEvents(ctx, api, streams, yield)
	}
}

// streamEvents returns the events of one stream.
func streamEvents[T any](ctx context.Context, api kube.API[T], s wire.Stream) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		// undecodable holds the objects that the consumer has not seen in any state, because
		// no state of them could be decoded so far.
		undecodable := make(map[kube.Key]bool)
		isSynced := false
		for change, err := range follow.Changes(ctx, api.Client(), s) {
			var event Event[T]
			isEvent := false
			if err == nil {
				event, isEvent, err = decode(api, change, undecodable)
			}
			if change.Type == follow.ChangeListed && !isSynced {
				isSynced, event, isEvent = true, Synced[T]{}, true
			}
			if (isEvent || err != nil) && !yield(event, err) {
				return
			}
		}
	}
}

// decode returns the event of a change. isEvent is false if the change concerns no object that the
// consumer has seen or can see.
func decode[T any](
	api kube.API[T], c follow.Change, undecodable map[kube.Key]bool,
) (event Event[T], isEvent bool, err error) {
	switch c.Type {
	case follow.ChangeAdded, follow.ChangeModified:
		t, err := api.Decode(c.Object)
		if err != nil {
			if c.Type == follow.ChangeAdded {
				undecodable[c.Key] = true
			}
			return nil, false, err
		}
		if c.Type == follow.ChangeAdded || undecodable[c.Key] {
			delete(undecodable, c.Key)
			return Added[T]{t}, true, nil
		}
		return Modified[T]{t}, true, nil
	case follow.ChangeDeleted:
		if undecodable[c.Key] {
			delete(undecodable, c.Key)
			return nil, false, nil
		}
		if c.Object != nil {
			if t, err := api.Decode(c.Object); err == nil {
				return Deleted[T]{Object: t}, true, nil
			}
		}
		o := api.Named(c.Key.Namespace, c.Key.Name, c.UID, c.ResourceVersion)
		return Deleted[T]{Object: o, Stale: true}, true, nil
	}
	return nil, false, nil
}

// mergeEvents yields the events of several streams. Synced comes when all streams are synced.
func mergeEvents[T any](ctx context.Context, api kube.API[T], streams []wire.Stream, yield func(Event[T], error) bool) {
	type item struct {
		event Event[T]
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	items := make(chan item)
	var running sync.WaitGroup
	for _, s := range streams {
		running.Go(func() {
			for event, err := range streamEvents(ctx, api, s) {
				select {
				case items <- item{event, err}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	defer func() { cancel(); <-done }()
	for unsynced := len(streams); ; {
		var i item
		select {
		case i = <-items:
		case <-done:
			return
		}
		if _, ok := i.event.(Synced[T]); ok {
			if unsynced--; unsynced > 0 {
				continue
			}
		}
		if !yield(i.event, i.err) {
			return
		}
	}
}
