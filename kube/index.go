package kube

import (
	"errors"
	"fmt"
)

// Index finds the objects of one type by values that a function takes from each, such as
// the names of the ConfigMaps that it mentions:
//
//	var bySettings = kube.NewIndex("settings", func(w *WebApp) []string { return []string{w.Spec.Settings} })
//
//	apps, err := kube.Namespaced[WebApp](c, namespace).List(ctx, bySettings.Is("blue"))
//
// A list that is narrowed by it is right with any client. It is cheap where the cache keeps
// the index, as controller.Index has it do; otherwise every object is looked at.
//
// The function has its own copy of an object, may be called for any state of it, and
// concurrently; it must depend on nothing else. An object that does not fit the type has no
// values.
type Index struct {
	name     string
	resource Resource
	values   func(object []byte) ([]string, error)
	err      error
}

// NewIndex makes an index of T. The name is for errors. What is wrong with T is an error
// of what the index is used for.
func NewIndex[T any, P ObjectOf[T]](name string, values func(*T) []string) *Index {
	kind, err := TypeOf[T, P]()
	if err == nil && values == nil {
		err = errors.New("its function is nil")
	}
	x := &Index{name: name, resource: kind.Resource, err: err}
	x.values = func(object []byte) ([]string, error) {
		t := new(T)
		if err := Unmarshal(object, t); err != nil {
			return nil, nil // who reads the object is told
		}
		return values(t), nil
	}
	return x
}

// String is the name.
func (x *Index) String() string { return x.name }

// Is selects the objects for which the function returns value, among others. It narrows
// lists only: servers do not know it.
func (x *Index) Is(value string) Selector {
	return Selector{match: &Match{Index: x, Value: value}}
}

// Of is an error unless the index is one of r, and can be used.
func (x *Index) CheckResource(r Resource) error {
	switch {
	case x == nil:
		return errors.New("the index is nil: make one with kube.NewIndex")
	case x.err != nil:
		return fmt.Errorf("the index %q: %w", x.name, x.err)
	case x.resource != r:
		return fmt.Errorf("the index %q is of %s (%s), not of %s (%s)", x.name, x.resource, x.resource.Version, r, r.Version)
	}
	return nil
}

// Values are those of an object, which is JSON. An error is a panic of the function.
func (x *Index) Values(object []byte) (values []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("the index %q: panic: %v", x.name, p)
		}
	}()
	return x.values(object)
}
