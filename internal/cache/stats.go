package cache

import (
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// Stats are the numbers of one stream.
type Stats struct {
	Stream wire.Stream
	// Synced is true if the stream has been listed.
	Synced bool
	// Unlisted is true if the first list has failed, and may fail for long: see [Unlisted].
	Unlisted bool
	// Watching is true if the watch is open, or there is nothing to watch because the server does not serve
	// the resource.
	Watching bool
	// LastEvent is when the last change or bookmark came. It is zero before the first.
	LastEvent time.Time
	// Subscribers is the number of subscriptions that share the stream.
	Subscribers int
	// Objects is the number of objects in the store.
	Objects int
	// Bytes is the size of the objects' contents in memory, compressed, and JSON is the size that
	// the server sent. Both are in bytes, without records and indexes.
	Bytes, JSON int64
	// Dictionary is the size of the dictionaries in use, in bytes.
	Dictionary int64
	// Dictionaries counts the dictionaries that were made so far.
	Dictionaries uint64
	// Restarts counts the lists after the first: each time a watch could not be resumed.
	Restarts uint64
	// Errors counts the errors of the stream, without the errors that concern single objects.
	Errors uint64
	// DecodeFailures counts the versions of objects whose metadata could not be read.
	DecodeFailures uint64
}

// counts are the numbers of a stream that its Stats show.
type counts struct {
	lists, errors, decodeFailures atomic.Uint64
	// lastEvent is the time of the last change, in nanoseconds since 1970. It is 0 before the first change.
	lastEvent atomic.Int64
}

func (c *counts) lastEventTime() time.Time {
	if at := c.lastEvent.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}
