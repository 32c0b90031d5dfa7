package kube

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// API is the typed view of one resource, in one namespace or in all namespaces. If the type or
// the namespace is wrong, every method that would send a request returns an error instead: see
// [API.Err]. An API is immutable and safe for concurrent use.
type API[T any] struct {
	resourceView
	object func(*T) Object
}

// resourceView is the part of an API that does not depend on its type, so that its methods
// are compiled once and not for each type.
type resourceView struct {
	client         *Client
	resource       Resource
	namespace      string
	subresource    string
	representation Representation
	hasStatus      bool
	// statusApart is true for a type whose resource is known to have a status subresource, so
	// that a write of the object leaves the status alone.
	statusApart bool
	// typeErr is what is wrong with the type. err is what is wrong with the type, the client, the
	// namespace or the subresource.
	typeErr, err error
}

// All returns the API of T in every namespace, or in the namespaces that the client is narrowed
// to. All also returns the API of a cluster-scoped T.
func All[T any, P ObjectOf[T]](c *Client) API[T] { return newAPI[T, P](c, "") }

// Namespaced returns the API of T in one namespace. An empty namespace and a cluster-scoped T are
// errors of the API: see [API.Err].
func Namespaced[T any, P ObjectOf[T]](c *Client, namespace string) API[T] {
	a := newAPI[T, P](c, namespace)
	if a.err == nil && namespace == "" {
		a.err = fmt.Errorf("%s: the namespace is empty: use kube.All for all namespaces", a.resource)
	}
	return a
}

func newAPI[T any, P ObjectOf[T]](c *Client, namespace string) API[T] {
	t, err := TypeOf[T, P]()
	return makeAPI[T, P](t.view(c, namespace, err))
}

// APIOf returns the API of T in a namespace, for a Type that [TypeOf] or [TypeOfKind] has returned. An
// empty namespace means all namespaces. In contrast to [All] and [Namespaced], APIOf does not examine the
// type again. A kind that is the Type of another Go type is an error of the API: see [API.Err].
func APIOf[T any, P ObjectOf[T]](c *Client, kind Type, namespace string) API[T] {
	return makeAPI[T, P](kind.view(c, namespace, kind.checkGoType(reflect.TypeFor[T]())))
}

// checkGoType returns an error if t is the Type of another Go type than want.
func (t Type) checkGoType(want reflect.Type) error {
	if t.Go == want {
		return nil
	}
	return fmt.Errorf("%s is not the type of %s, but of %v", t.Resource, TypeName(want), t.Go)
}

// view returns the view of t in a namespace, or in all namespaces if namespace is empty. err is what is
// wrong with t, or nil.
func (t Type) view(c *Client, namespace string, err error) resourceView {
	isAnyKind := err == nil && StandsForAnyKind(t.Go)
	hasStatus := err == nil && (isAnyKind && t.Representation == Full || t.HasStatus())
	v := newResourceView(c, t.Resource, namespace, t.Representation, hasStatus, err)
	v.statusApart = hasStatus && !isAnyKind && (t.Definition == nil || !t.Definition.Foreign)
	return v
}

// Streams returns the streams of the objects of t that match, as [API.Streams] does: one for each namespace
// that the client is narrowed to, or one for all namespaces.
func (t Type) Streams(c *Client, selectors ...Selector) ([]Stream, error) {
	return t.view(c, "", nil).streams(selectors)
}

// Dynamic returns the API of a resource without a Go type of its own. An empty namespace
// means all namespaces. A resource without Version, Kind or Plural is an error of the API.
func Dynamic(c *Client, r Resource, namespace string) API[unstructured.Unstructured] {
	return makeAPI[unstructured.Unstructured](newResourceView(c, r, namespace, Full, true, complete(r)))
}

// Metadata returns the API of the metadata of a resource. The server sends nothing else of
// its objects. An empty namespace means all namespaces. A resource without Version, Kind or Plural
// is an error of the API.
func Metadata(c *Client, r Resource, namespace string) API[metav1.PartialObjectMetadata] {
	return makeAPI[metav1.PartialObjectMetadata](newResourceView(c, r, namespace, MetadataOnly, false, complete(r)))
}

func complete(r Resource) error {
	if r.Version == "" || r.Kind == "" || r.Plural == "" {
		return fmt.Errorf("the resource %+v is not complete: it needs Version, Kind and Plural", r)
	}
	return nil
}

// For returns the API of the same resource for another client. An empty namespace means all
// namespaces, as for [All]. In contrast to [Namespaced] and All, For does not examine the type again.
func (a API[T]) For(c *Client, namespace string) API[T] {
	return API[T]{resourceView: a.viewFor(c, namespace), object: a.object}
}

func (a resourceView) viewFor(c *Client, namespace string) resourceView {
	v := newResourceView(c, a.resource, namespace, a.representation, a.hasStatus, a.typeErr)
	v.statusApart = a.statusApart
	return v
}

func makeAPI[T any, P ObjectOf[T]](v resourceView) API[T] {
	return API[T]{resourceView: v, object: func(t *T) Object { return P(t) }}
}

// newResourceView returns the view of r in a namespace, or in all namespaces if namespace is empty. An
// err that is not nil becomes the error of the view.
func newResourceView(c *Client, r Resource, namespace string, form Representation, hasStatus bool, err error) resourceView {
	typeErr := err
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
	return resourceView{
		client: c, resource: r, namespace: namespace, representation: form, hasStatus: hasStatus, typeErr: typeErr, err: err,
	}
}

// Resource returns the resource that a works on.
func (a API[T]) Resource() Resource { return a.resource }

// Err returns what is wrong with the type, the client, the namespace or the subresource, or nil.
func (a API[T]) Err() error { return a.err }

// Object returns t as an Object.
func (a API[T]) Object(t *T) Object { return a.object(t) }

// Client returns the client that a was made with.
func (a API[T]) Client() *Client { return a.client }

// Status returns the same view of the status subresource. The view reads whole objects, and writes
// nothing but their status. A type without a status is an error of the view: see [API.Err].
func (a API[T]) Status() API[T] {
	if a.err == nil && !a.hasStatus {
		a.err = fmt.Errorf("%s (%s) have no status", a.resource, TypeName(reflect.TypeFor[T]()))
	}
	a.subresource = "status"
	return a
}

// request returns a request for one object.
func (a resourceView) request(verb Verb, name string) *Request {
	return &Request{
		Verb: verb, Resource: a.resource, Namespace: a.namespace, Name: name,
		Subresource: a.subresource, Representation: a.representation,
	}
}

// requireName returns an error unless a and the name together name one object.
func (a resourceView) requireName(verb Verb, name string) error {
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
	return a.rejectProjection(verb, name)
}

// rejectSubresource returns an error if a is a view of a subresource. A subresource can be
// read and changed, but neither created nor deleted.
func (a resourceView) rejectSubresource(verb Verb, name string) error {
	if a.err == nil && a.subresource != "" {
		return fmt.Errorf("%s %s/%s %q: this can be done to the whole object only", verb, a.resource, a.subresource, name)
	}
	return nil
}

// do sends a request and decodes the answer.
func (a API[T]) do(ctx context.Context, r *Request) (*T, error) {
	t := new(T)
	if err := a.doInto(ctx, r, a.object(t)); err != nil {
		return nil, err
	}
	return t, nil
}

// doInto sends a request and decodes the answer into obj.
func (a resourceView) doInto(ctx context.Context, r *Request, obj Object) error {
	response, err := a.client.Do(ctx, r)
	if err != nil {
		return err
	}
	err = a.decodeInto(response.Body, obj)
	if e, ok := errors.AsType[*DecodeError](err); ok && e.Ref.Name == "" {
		e.Ref.Namespace, e.Ref.Name = r.Namespace, r.Name // the answer does not name the object
	}
	return err
}

// Get reads one object. A client with a cache may answer from the cache. If there is no such
// object, [IsNotFound] reports the error.
func (a API[T]) Get(ctx context.Context, name string) (*T, error) {
	if err := a.requireName(VerbGet, name); err != nil {
		return nil, err
	}
	return a.do(ctx, a.request(VerbGet, name))
}

// Get reads one object, as [API.Get] does. The namespace of a cluster-scoped object is empty.
func Get[T any, P ObjectOf[T]](ctx context.Context, c *Client, namespace, name string) (*T, error) {
	return newAPI[T, P](c, namespace).Get(ctx, name)
}

// List reads all objects that match. Objects that do not fit T are left out, and the error
// has a [*DecodeError] for each of them. If the list becomes too old between two pages (see
// [IsGone]), List begins again, at most twice.
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

// Each lists all objects that match, one decoded object at a time, and holds one page of the
// list in memory. An object that does not fit T comes as a [*DecodeError], and the sequence
// goes on. Any other error ends the sequence, such as the error of a list that has become too old
// between two pages: see [IsGone].
func (a API[T]) Each(ctx context.Context, selectors ...Selector) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for item, err := range a.items(ctx, selectors) {
			var t *T
			if err == nil {
				t, err = a.decode(item)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// items lists the items of all objects that match, not decoded. An item that cannot be read
// comes as a [*DecodeError], and the sequence goes on. Any other error ends the sequence.
func (a resourceView) items(ctx context.Context, selectors []Selector) iter.Seq2[jsontext.Value, error] {
	return func(yield func(jsontext.Value, error) bool) {
		matches, err := a.matches(selectors)
		if err != nil {
			yield(nil, err)
			return
		}
		streams, err := a.streams(withoutMatches(selectors))
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
					if !yield(item, nil) {
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
