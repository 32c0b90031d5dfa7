package cache

import (
	"context"
	"errors"

	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/cache/internal/restoration"
	"github.com/yare-go/yare/kube/wire"
)

// ErrClosed is the error of [Cache.Open] after [Cache.Close].
var ErrClosed = errors.New("the cache is closed")

// Cache holds the streams of a program and their stores. All methods can be used
// concurrently.
type Cache struct{ shared }

// shared holds what the streams of a Cache have in common.
type shared struct {
	handler      wire.Handler
	options      options
	streams      *registry
	overlay      *programOverlay
	restorations *restoration.Restorations
}

// New returns a Cache whose lists and watches go to h. Nothing is followed before the first
// [Cache.Open].
func New(h wire.Handler, o ...Option) *Cache {
	all := new(registry)
	program := &programOverlay{Overlay: overlay.New(), streams: all}
	c := &Cache{
		shared{handler: h, streams: all, overlay: program, restorations: restoration.New(program.InvalidateGroups)},
	}
	for _, option := range o {
		option(&c.options)
	}
	return c
}

// Open subscribes to the stream id. If no subscription to the stream is open, it is listed and
// watched from now on; otherwise they share its watch and its store.
//
// The subscriber receives all objects as Added, then Synced, and then every change. It receives
// each of them once, in the order of the stream, whenever it joins. Open does not wait for any
// of them. The subscription ends with [Subscription.Close], or soon after ctx ends. The requests
// of a stream have the values of the ctx of its first subscription.
//
// The contents of Secrets are in memory, uncompressed, while a stream of Secrets is open that is
// not limited to metadata.
//
// Open returns only [ErrClosed]. An error of the stream is reported to [OnError], and the stream
// goes on.
func (c *Cache) Open(ctx context.Context, id wire.Stream, subscriber Subscriber) (*Subscription, error) {
	sub := &Subscription{streams: c.streams, subscriber: subscriber}
	err := c.streams.subscribe(ctx, id, sub,
		func(cancel context.CancelFunc) *followedStream { return newFollowedStream(c.shared, id, cancel) })
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// Handler returns a handler that answers a read from a store, if the store holds every object of the read.
// The handler passes everything else to next, including the reads of [kube.Client.Live]. It records the
// writes, so that a read through it is at least as new as every write through it, whatever the verb, the
// namespace and the representation. All handlers of one Cache share one overlay.
func (c *Cache) Handler(next wire.Handler) wire.Handler { return c.View().Handler(next) }

// View returns the cache as one controller may see it. The triggers of the controller come from own.
func (c *Cache) View(own ...*Subscription) *View {
	v := &View{overlay: c.overlay}
	for _, sub := range own {
		v.own = append(v.own, sub.followed)
	}
	return v
}

// RecordPossiblyGone records that the object of ref may be gone, although the streams still show it. So the next read
// of the object asks the server, unless the object of the UID is already known to be gone. RecordPossiblyGone makes no
// request.
func (c *Cache) RecordPossiblyGone(ref wire.Ref) {
	c.overlay.RecordPossiblyGone(overlay.KeyOf(ref), ref.UID)
}

// RecordDefinition records that the program defines kinds of a group. So the API server stores them beside the kinds
// of Kubernetes, and a restored backup concerns both.
func (c *Cache) RecordDefinition(group string) { c.restorations.RecordDefinition(group) }

// Stats returns the Stats of all streams, in the order in which they were opened.
func (c *Cache) Stats() []Stats { return c.streams.stats() }

// Close ends all streams and waits for their goroutines. No subscriber is called after it.
// A Subscriber must not call it.
func (c *Cache) Close() { c.streams.close() }

// Option changes how a [Cache] works.
type Option func(*options)

type options struct {
	onError     func(wire.Stream, error)
	onRecovered func(wire.Stream)
	termVersion func() string
}

// OnError sets a function that receives every error of a stream. A [*wire.Error] concerns
// the stream as a whole: a list or a watch failed, and is repeated. A [*RestorationError] concerns the
// stream as a whole too. Any other error concerns one object: the
// object cannot be read (a [*wire.DecodeError]), or an index function panicked.
//
// The goroutines of the streams call f, so it must be safe for concurrent use and must not
// block. Default: errors are only counted, see [Stats].
func OnError(f func(wire.Stream, error)) Option {
	return func(o *options) { o.onError = f }
}

// OnRecovered sets a function that is called when a stream works again after an error of the stream as a
// whole. It is called under the same conditions as the function of [OnError].
func OnRecovered(f func(wire.Stream)) Option {
	return func(o *options) { o.onRecovered = f }
}

// TermVersion sets a function that returns the resource version at which the term of this process began. A stream of
// the home cluster that has reached the version shows all writes of former leaders: see [Subscription.IsBehindTerm].
// The version is empty if there was no former leader, and before the term. f must be safe for concurrent use. Default:
// the version is empty.
func TermVersion(f func() string) Option {
	return func(o *options) { o.termVersion = f }
}
