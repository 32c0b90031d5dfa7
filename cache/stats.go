package cache

import "github.com/yare-go/yare/kube"

// Stats are the figures of one stream.
type Stats struct {
	Stream kube.Stream
	// Synced is true once the stream has been listed.
	Synced bool
	// Subscribers is how many subscriptions share the stream.
	Subscribers int
	// Objects is how many there are now.
	Objects int
	// Bytes is what their contents take in memory, compressed, and JSON what the server
	// sent; both in bytes, without records and indexes.
	Bytes, JSON int64
	// Dictionary is the size of the dictionaries in use, in bytes.
	Dictionary int64
	// Dictionaries counts those that were made so far.
	Dictionaries uint64
	// Restarts counts the lists after the first: each time a watch could not be resumed.
	Restarts uint64
	// Errors counts the troubles of the stream, those with single objects apart.
	Errors uint64
	// DecodeFailures counts the versions of objects whose metadata could not be read.
	DecodeFailures uint64
}
