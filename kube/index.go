package kube

import (
	"errors"
	"fmt"

	"github.com/yare-go/yare/kube/wire"
)

// Index finds the objects of one type by values. A function takes the values from an object, such as the
// names of the ConfigMaps in its spec:
//
//	var bySettings = kube.NewIndex("settings", func(w *WebApp) []string { return []string{w.Spec.Settings} })
//
//	apps, err := kube.List[WebApp](ctx, c, namespace, bySettings.Is("blue"))
//
// A list that is narrowed by an index is correct with any client. It is cheap if the cache keeps
// the index: see controller.Index. Otherwise every object is decoded.
//
// The function gets its own copy of an object, in any state, and must depend on nothing else. It
// may be called concurrently. An object that does not fit the type has no values.
type Index struct {
	name           string
	resource       wire.Resource
	representation wire.Representation
	values         func(object []byte) []string
	err            error
}

// NewIndex returns an index of T. Errors show its name. If T has no resource or values is nil, each
// use of the index is an error.
func NewIndex[T any, P ObjectOf[T]](name string, values func(*T) []string) *Index {
	kind, err := TypeOf[T, P]()
	if err == nil && values == nil {
		err = errors.New("its function is nil")
	}
	x := &Index{name: name, resource: kind.Resource, representation: kind.Representation, err: err}
	decoder := newDecoder()
	x.values = func(object []byte) []string {
		t := new(T)
		if err := decoder.decode(object, t); err != nil {
			return nil // a read of the object returns the error
		}
		return values(t)
	}
	return x
}

// String returns the name of the index.
func (x *Index) String() string { return x.name }

// Is selects the objects whose values in the index include value. The selector works only in lists,
// because servers do not know indexes.
func (x *Index) Is(value string) Selector {
	return Selector{match: &wire.Match{Index: x, Value: value}}
}

// Check returns an error unless x can be used for the objects of r in the given representation. An
// index of a projection can be used for whole objects.
func (x *Index) Check(r wire.Resource, representation wire.Representation) error {
	switch {
	case x == nil:
		return errors.New("the index is nil: make one with kube.NewIndex")
	case x.err != nil:
		return fmt.Errorf("the index %q: %w", x.name, x.err)
	case x.resource != r:
		return fmt.Errorf("the index %q is of %s (%s), not of %s (%s)", x.name, x.resource, x.resource.Version, r, r.Version)
	case representation == wire.MetadataOnly:
		return fmt.Errorf(
			"the index %q looks at more than the metadata of %s: use it where whole objects are watched or listed", x.name, r)
	case representation != wire.Full && representation != x.representation:
		return fmt.Errorf(
			"the index %q looks at other fields of %s than the projection has: make an index of the projected type", x.name, r)
	}
	return nil
}

// Values returns the values of an object, which is JSON. If the function panics, Values
// returns an error.
func (x *Index) Values(object []byte) (values []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("the index %q: panic: %v", x.name, p)
		}
	}()
	return x.values(object), nil
}
