package cache

import (
	"github.com/yare-go/yare/internal/cache/internal/database"
)

// lookupResult is what is known of an object without a request.
type lookupResult struct {
	// isCertain is false if only the server knows. Then nothing else is set.
	isCertain bool
	isPresent bool
	// packed is from a store. It is nil if answer is set, or if there is no object.
	packed *database.PackedObject
	// answer is the content that a read or a write was answered with.
	answer []byte
}

// bytes returns a copy of the object.
func (l lookupResult) bytes() ([]byte, error) { return l.appendBytes(nil) }

// appendBytes appends the object to dst.
func (l lookupResult) appendBytes(dst []byte) ([]byte, error) {
	if l.answer != nil {
		return append(dst, l.answer...), nil
	}
	return Object{packed: l.packed}.AppendBytes(dst)
}

// record returns the record of the object. It returns the zero Record if there is no object.
func (l lookupResult) record() (Record, error) {
	switch {
	case l.answer == nil && l.packed == nil:
		return Record{}, nil
	case l.answer == nil:
		return recordOf(l.packed), nil
	}
	e, err := database.PackMetadata(l.answer)
	if err != nil {
		return Record{}, err
	}
	return recordOf(e), nil
}
