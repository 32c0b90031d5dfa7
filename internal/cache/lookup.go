package cache

import (
	"bytes"

	"github.com/yare-go/yare/internal/cache/internal/store"
)

// lookupResult is what is known of an object without a request.
type lookupResult struct {
	// isCertain is false if only the server knows. Then nothing else is set.
	isCertain bool
	isPresent bool
	// object is from a store. It is not set if answered is set.
	object Object
	// answered is the content that a read or a write was answered with.
	answered []byte
}

// bytes returns a copy of the object.
func (l lookupResult) bytes() ([]byte, error) {
	if l.answered != nil {
		return bytes.Clone(l.answered), nil
	}
	return l.object.Bytes()
}

// record returns the record of the object.
func (l lookupResult) record() (Record, error) {
	if l.answered == nil {
		return l.object.Record, nil
	}
	e, err := store.MetadataOf(l.answered)
	if err != nil {
		return Record{}, err
	}
	return recordOf(e), nil
}
