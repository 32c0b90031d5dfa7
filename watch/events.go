package watch

import (
	"context"
	"iter"
	"sync"

	"github.com/yare-go/yare/kube"
)

// Events watches what api names, and selectors narrow, until ctx ends or the loop is left.
// An error is a report of trouble that is being dealt with, and its event is nil; the
// sequence goes on after it. Only an error of api itself, or of a selector, is the end.
//
// An object that does not fit T is reported as a [*kube.DecodeError] each time it changes,
// and never stands in its older form for the newer one. The objects belong to the caller.
func Events[T any](ctx context.Context, api kube.API[T], selectors ...kube.Selector) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		streams, err := api.Streams(selectors...)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(streams) == 1 {
			typed(ctx, api, streams[0])(yield)
			return
		}
		merge(ctx, api, streams, yield)
	}
}

// typed is one stream, decoded.
func typed[T any](ctx context.Context, api kube.API[T], s kube.Stream) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		// hidden are the objects that the caller has not been shown in any state, because
		// none could be decoded so far.
		hidden := make(map[place]bool)
		synced := false
		for change, err := range Follow(ctx, api.Client(), s) {
			var event Event[T]
			if err == nil {
				event, err = decode(api, change, hidden)
			}
			if change.Type == ChangeListed {
				if synced {
					continue
				}
				synced, event = true, Synced[T]{}
			}
			if event == nil && err == nil {
				continue
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// place is where an object is.
type place struct{ namespace, name string }

// decode makes an event of a change, or none for the end of an object never shown.
func decode[T any](api kube.API[T], c Change, hidden map[place]bool) (Event[T], error) {
	k := place{c.Record.Namespace, c.Record.Name}
	switch c.Type {
	case ChangeAdded, ChangeModified:
		t, err := api.Decode(c.Object)
		if err != nil {
			if c.Type == ChangeAdded {
				hidden[k] = true
			}
			return nil, err
		}
		if c.Type == ChangeAdded || hidden[k] {
			delete(hidden, k)
			return Added[T]{t}, nil
		}
		return Modified[T]{t}, nil
	case ChangeDeleted:
		if hidden[k] {
			delete(hidden, k)
			return nil, nil
		}
		if c.Object != nil {
			if t, err := api.Decode(c.Object); err == nil {
				return Deleted[T]{Object: t}, nil
			}
		}
		r := c.Record
		return Deleted[T]{Object: api.Named(r.Namespace, r.Name, r.UID, r.ResourceVersion), Stale: true}, nil
	}
	return nil, nil
}

// merge is several streams as one: it is synced when all of them are.
func merge[T any](ctx context.Context, api kube.API[T], streams []kube.Stream, yield func(Event[T], error) bool) {
	type item struct {
		event Event[T]
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	items := make(chan item)
	var running sync.WaitGroup
	for _, s := range streams {
		running.Go(func() {
			for event, err := range typed(ctx, api, s) {
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
