package cache

import (
	"errors"

	"github.com/yare-go/yare/kube/wire"
)

// KnownState is the state of one object, as far as it is certain without a request.
type KnownState struct {
	// IsCertain reports whether the state is certain. If it is not, nothing else is set.
	IsCertain bool
	// IsPresent reports whether the object exists. If it does not, nothing below is set.
	IsPresent bool
	Record    Record
	// Representation is the representation of the bytes: the whole object, or its metadata only.
	Representation wire.Representation

	found lookupResult
}

var errNotPresent = errors.New("the cache shows no such object")

// Bytes returns a copy of the JSON of the object, in the representation that Representation names.
// Each call decompresses it. Bytes returns an error if the object is not present or cannot be read.
func (s *KnownState) Bytes() ([]byte, error) {
	if s.IsPresent && s.Representation == wire.Full {
		return s.found.bytes()
	}
	return s.Metadata()
}

// Metadata returns the metadata of the object as the JSON of a PartialObjectMetadata. It returns an
// error if the object is not present or cannot be read.
func (s *KnownState) Metadata() ([]byte, error) {
	if !s.IsPresent {
		return nil, errNotPresent
	}
	object, err := s.found.bytes()
	if err != nil {
		return nil, err
	}
	return metadataOf(object)
}
