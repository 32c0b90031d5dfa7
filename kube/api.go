package kube

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// API is the typed view on one resource, in one namespace or in all. What is wrong with
// the type or the namespace is an error of every method, before any request.
type API[T any] struct {
	client         *Client
	resource       Resource
	namespace      string
	subresource    string
	representation Representation
	hasStatus      bool
	// statusApart is true for a type whose resource is known to have a status subresource, so
	// that a write of the object leaves the status alone.
	statusApart bool
	object      func(*T) Object
	err         error
}

// All is T in every namespace, or in those that the client is narrowed to; or a
// cluster-scoped T.
func All[T any, P ObjectOf[T]](c *Client) API[T] { return newAPI[T, P](c, "") }

// Namespaced is T in one namespace.
func Namespaced[T any, P ObjectOf[T]](c *Client, namespace string) API[T] {
	a := newAPI[T, P](c, namespace)
	if a.err == nil && namespace == "" {
		a.err = fmt.Errorf("%s: the namespace is empty: use kube.All for all namespaces", a.resource)
	}
	return a
}

func newAPI[T any, P ObjectOf[T]](c *Client, namespace string) API[T] {
	t, err := TypeOf[T, P]()
	a := makeAPI[T, P](c, t.Resource, namespace, Full, err == nil && t.HasStatus(), err)
	a.statusApart = a.hasStatus && (t.Definition == nil || !t.Definition.Foreign)
	return a
}

// Dynamic is a resource without a Go type of its own. An empty namespace means all.
func Dynamic(c *Client, r Resource, namespace string) API[unstructured.Unstructured] {
	return makeAPI[unstructured.Unstructured](c, r, namespace, Full, true, complete(r))
}

// Metadata is the metadata alone of a resource: the server sends no more. An empty
// namespace means all.
func Metadata(c *Client, r Resource, namespace string) API[metav1.PartialObjectMetadata] {
	return makeAPI[metav1.PartialObjectMetadata](c, r, namespace, MetadataOnly, false, complete(r))
}

func complete(r Resource) error {
	if r.Version == "" || r.Kind == "" || r.Plural == "" {
		return fmt.Errorf("the resource %+v is not complete: it needs Version, Kind and Plural", r)
	}
	return nil
}

func makeAPI[T any, P ObjectOf[T]](c *Client, r Resource, namespace string, form Representation, hasStatus bool, err error) API[T] {
	switch {
	case err != nil:
	case c == nil:
		err = fmt.Errorf("%s: the client is nil", r)
	case r.ClusterScoped && namespace != "":
		err = fmt.Errorf("%s live outside of namespaces, so there are none in %q: use kube.All", r, namespace)
	case namespace != "":
		err = checkSegment("namespace", namespace)
	}
	if err == nil && namespace == "" && !r.ClusterScoped {
		err = c.namespacesErr
	}
	return API[T]{
		client: c, resource: r, namespace: namespace, representation: form, hasStatus: hasStatus,
		object: func(t *T) Object { return P(t) }, err: err,
	}
}

// Resource is what a works on.
func (a API[T]) Resource() Resource { return a.resource }

// Err is what is wrong with the type or the namespace, if anything is.
func (a API[T]) Err() error { return a.err }

// Object is t as an object.
func (a API[T]) Object(t *T) Object { return a.object(t) }

// Client is the client that a was made with.
func (a API[T]) Client() *Client { return a.client }

// Status is the same view on the status subresource: what is read is the whole object,
// what is written is its status alone.
func (a API[T]) Status() API[T] {
	if a.err == nil && !a.hasStatus {
		a.err = fmt.Errorf("%s (%s) have no status", a.resource, TypeName(reflect.TypeFor[T]()))
	}
	a.subresource = "status"
	return a
}

// request is a request of a for one object.
func (a API[T]) request(verb Verb, name string) *Request {
	return &Request{
		Verb: verb, Resource: a.resource, Namespace: a.namespace, Name: name,
		Subresource: a.subresource, Representation: a.representation,
	}
}

// one checks that a names one object.
func (a API[T]) requireName(verb Verb, name string) error {
	switch {
	case a.err != nil:
		return a.err
	case name == "":
		return fmt.Errorf("%s %s: the name is empty", verb, a.resource)
	case a.namespace == "" && !a.resource.ClusterScoped:
		return fmt.Errorf("%s %s %q: the namespace is missing: use kube.Namespaced", verb, a.resource, name)
	}
	if err := checkSegment("name", name); err != nil {
		return fmt.Errorf("%s %s: %w", verb, a.resource, err)
	}
	return nil
}

// whole checks that a is no view on a subresource, where only reading and writing of what
// is there make sense.
func (a API[T]) rejectSubresource(verb Verb, name string) error {
	if a.err == nil && a.subresource != "" {
		return fmt.Errorf("%s %s/%s %q: this can be done to the whole object only", verb, a.resource, a.subresource, name)
	}
	return nil
}

// do makes a request and decodes the answer.
func (a API[T]) do(ctx context.Context, r *Request) (*T, error) {
	response, err := a.client.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	t, err := a.decode(response.Body)
	if e, ok := errors.AsType[*DecodeError](err); ok && e.Ref.Name == "" {
		e.Ref.Namespace, e.Ref.Name = r.Namespace, r.Name // the answer does not say
	}
	return t, err
}

// Get reads one object.
func (a API[T]) Get(ctx context.Context, name string) (*T, error) {
	if err := a.requireName(VerbGet, name); err != nil {
		return nil, err
	}
	return a.do(ctx, a.request(VerbGet, name))
}

// Get reads one object: from the cache where the client has one, else from the server. The
// namespace of a cluster-scoped object is empty.
func Get[T any, P ObjectOf[T]](ctx context.Context, c *Client, namespace, name string) (*T, error) {
	return newAPI[T, P](c, namespace).Get(ctx, name)
}

// List reads all that match. Objects that do not fit T are left out, and the error names
// each of them, as a [*DecodeError].
func (a API[T]) List(ctx context.Context, selectors ...Selector) ([]*T, error) {
	// A list of several pages can become too old between two of them.
	for attempt := 1; ; attempt++ {
		var all []*T
		var bad []error
		var failed error
		for t, err := range a.Each(ctx, selectors...) {
			if _, ok := errors.AsType[*DecodeError](err); ok {
				bad = append(bad, err)
			} else if err != nil {
				failed = err
			} else {
				all = append(all, t)
			}
		}
		if IsGone(failed) && attempt < 3 {
			continue
		}
		if failed != nil {
			return nil, failed
		}
		return all, errors.Join(bad...)
	}
}

// Each is List, one decoded object at a time and one page of the server's in memory. An
// object that does not fit T comes as a [*DecodeError], and the sequence goes on; any
// other error ends it.
func (a API[T]) Each(ctx context.Context, selectors ...Selector) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		matches, err := a.matches(selectors)
		if err != nil {
			yield(nil, err)
			return
		}
		streams, err := a.Streams(withoutMatches(selectors)...)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, stream := range streams {
			for page, err := range stream.pages(ctx, a.client, matches) {
				if err != nil {
					yield(nil, err)
					return
				}
				for _, item := range page.Items {
					if !yield(a.decode(item)) {
						return
					}
				}
				for _, err := range page.Unreadable {
					if !yield(nil, err) {
						return
					}
				}
			}
		}
	}
}
