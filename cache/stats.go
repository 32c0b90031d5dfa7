package cache

import "github.com/yare-go/yare/kube"

// Stats are the figures of one stream.
type Stats struct {
	Stream kube.Stream
	// Synced reports whether the stream has been listed.
	Synced bool
	// Subscribers is the number of subscriptions that share the stream.
	Subscribers int
	// Objects is the number of objects in the store.
	Objects int
	// Bytes is the size of their contents in memory, compressed, and JSON the size that the
	// server sent; both in bytes, without records and indexes.
	Bytes, JSON int64
	// Dictionary is the size of the dictionaries in use, in bytes.
	Dictionary int64
	// Dictionaries counts the dictionaries that were made so far.
	Dictionaries uint64
	// Restarts counts the lists after the first: each time a watch could not be resumed.
	Restarts uint64
	// Errors counts the errors of the stream, without those that concern single objects.
	Errors uint64
	// DecodeFailures counts the versions of objects whose metadata could not be read.
	DecodeFailures uint64
}
