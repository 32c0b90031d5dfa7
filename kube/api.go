package kube

import (
	"context"
	"fmt"
	"io"
	"iter"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// API is the typed view of one resource, in one namespace or in all namespaces. If the type or
// the namespace is wrong, every method that would send a request returns an error instead: see
// [API.Err]. An API is immutable and safe for concurrent use.
//
// [API.Apply] declares the fields of a child. [API.PatchDifference] changes some fields of an object that was read.
// [API.Modify] suits a change that depends on the content of the object: it repeats the change after a conflict.
// [CreateSubresource] evicts and binds Pods.
type API[T any] struct {
	// The compiler compiles the methods for each T. Therefore functions without T do the work.
	client *Client
	target target
	object func(*T) Object
	// typeErr is what is wrong with the type.
	typeErr error
}

// Everywhere returns the API of T in every namespace, or in the namespaces that the client is narrowed
// to. Everywhere also returns the API of a cluster-scoped T.
func Everywhere[T any, P ObjectOf[T]](c *Client) API[T] { return newAPI[T, P](c, "") }

// Namespaced returns the API of T in one namespace. An empty namespace and a cluster-scoped T are
// errors of the API: see [API.Err].
func Namespaced[T any, P ObjectOf[T]](c *Client, namespace string) API[T] {
	a := newAPI[T, P](c, namespace)
	if a.target.err == nil && namespace == "" {
		a.target.err = fmt.Errorf("%s: the namespace is empty: use kube.Everywhere for all namespaces", a.target.resource)
	}
	return a
}

// newAPI returns the API of T. It examines the type, unless c knows the type.
func newAPI[T any, P ObjectOf[T]](c *Client, namespace string) API[T] {
	return newAPIOfTarget[T, P](c, c.kindTable().targetOf(reflect.TypeFor[T](), TypeOf[T, P]), namespace)
}

// APIOf returns the API of T in a namespace, for a Type that [TypeOf] or [TypeOfKind] has returned. An
// empty namespace means all namespaces. In contrast to [Everywhere] and [Namespaced], APIOf does not examine the
// type again. A kind that is the Type of another Go type is an error of the API: see [API.Err].
func APIOf[T any, P ObjectOf[T]](c *Client, kind Type, namespace string) API[T] {
	return newAPIOfTarget[T, P](c, kind.target(kind.checkGoType(reflect.TypeFor[T]())), namespace)
}

// Dynamic returns the API of a resource without a Go type. An empty namespace
// means all namespaces. A resource without Version, Kind or Plural is an error of the API.
func Dynamic(c *Client, r wire.Resource, namespace string) API[unstructured.Unstructured] {
	return newAPIOfTarget[unstructured.Unstructured](c, target{resource: r, hasStatus: true, err: checkResource(r)},
		namespace)
}

// Metadata returns the API of the metadata of a resource. The server sends nothing else of
// its objects. An empty namespace means all namespaces. A resource without Version, Kind or Plural
// is an error of the API.
func Metadata(c *Client, r wire.Resource, namespace string) API[metav1.PartialObjectMetadata] {
	return newAPIOfTarget[metav1.PartialObjectMetadata](c,
		target{resource: r, representation: wire.MetadataOnly, err: checkResource(r)}, namespace)
}

// newAPIOfTarget returns the API of t in a namespace, or in all namespaces if namespace is empty. t has no namespace.
func newAPIOfTarget[T any, P ObjectOf[T]](c *Client, t target, namespace string) API[T] {
	return API[T]{
		client: c, target: t.in(c, namespace), object: func(object *T) Object { return P(object) }, typeErr: t.err,
	}
}

// For returns the API of the same resource for another client. An empty namespace means all
// namespaces, as for [Everywhere]. In contrast to [Namespaced] and [Everywhere], For does not examine the type again.
func (a API[T]) For(c *Client, namespace string) API[T] {
	a.target.err, a.target.subresource = a.typeErr, ""
	a.client, a.target = c, a.target.in(c, namespace)
	return a
}

// Resource returns the resource that a works on.
func (a API[T]) Resource() wire.Resource { return a.target.resource }

// Err returns what is wrong with the type, the client, the namespace or the subresource, or nil.
func (a API[T]) Err() error { return a.target.err }

// Object returns t as an Object.
func (a API[T]) Object(t *T) Object { return a.object(t) }

// Client returns the client that a was made with.
func (a API[T]) Client() *Client { return a.client }

// Status returns the same view of the status subresource. The view reads whole objects, and writes
// nothing but their status. A type without a status is an error of the view: see [API.Err].
func (a API[T]) Status() API[T] {
	if a.target.err == nil && !a.target.hasStatus {
		a.target.err = fmt.Errorf("%s (%s) have no status", a.target.resource, ident.GoTypeName(reflect.TypeFor[T]()))
	}
	a.target.subresource = "status"
	return a
}

// Subresource returns the view of a subresource that reads and writes whole objects, such as
// ephemeralcontainers and resize of Pods, or approval of CertificateSigningRequests. The server
// takes only the part of a written object that belongs to the subresource. The view reads, replaces
// and patches. See [API.Status] for the status, and [CreateSubresource] for subresources with types
// of their own.
func (a API[T]) Subresource(name string) API[T] {
	if name == "status" {
		return a.Status()
	}
	if a.target.err == nil {
		a.target.err = checkSubresource(name)
	}
	a.target.subresource = name
	return a
}

// send sends a request, and decodes the answer.
func (a API[T]) send(ctx context.Context, r *wire.Request) (*T, error) {
	t := new(T)
	if err := a.target.decoder(a.client).send(ctx, a.client, r, a.object(t)); err != nil {
		return nil, err
	}
	return t, nil
}

// Get reads one object. A client with a cache may answer from the cache. If there is no such
// object, [IsNotFound] reports the error.
func (a API[T]) Get(ctx context.Context, name string) (*T, error) {
	if err := a.target.requireName(wire.VerbGet, name); err != nil {
		return nil, err
	}
	return a.send(ctx, a.target.request(wire.VerbGet, name))
}

// Get reads one object, as [API.Get] does. The namespace of a cluster-scoped object is empty. If there is no such
// object, [IsNotFound] reports the error.
func Get[T any, P ObjectOf[T]](ctx context.Context, c *Client, namespace, name string) (*T, error) {
	return newAPI[T, P](c, namespace).Get(ctx, name)
}

// List reads all objects that match. Objects that do not fit T are left out, and the error
// has a [*wire.DecodeError] for each of them. If the list becomes too old between two pages (see
// [HasReason]), List begins again, at most twice.
func (a API[T]) List(ctx context.Context, selectors ...Selector) ([]*T, error) {
	var all []*T
	err := listAll(ctx, a.client, a.target, selectors, func() { all = nil }, func(item jsontext.Value) error {
		t, err := a.Decode(item)
		if err == nil {
			all = append(all, t)
		}
		return err
	})
	return all, err
}

// List reads the objects of T that match in a namespace, as [API.List] does. An empty namespace stands for all
// namespaces, or for the namespaces that the client is narrowed to.
func List[T any, P ObjectOf[T]](ctx context.Context, c *Client, namespace string, selectors ...Selector) ([]*T, error) {
	return newAPI[T, P](c, namespace).List(ctx, selectors...)
}

// Each lists all objects that match, one decoded object at a time, and holds one page of the
// list in memory. An object that does not fit T comes as a [*wire.DecodeError], and the sequence
// goes on. Any other error ends the sequence, such as the error of a list that has become too old
// between two pages: see [HasReason].
func (a API[T]) Each(ctx context.Context, selectors ...Selector) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		listItems(ctx, a.client, a.target, selectors, func(item jsontext.Value, err error) bool {
			var t *T
			if err == nil {
				t, err = a.Decode(item)
			}
			return yield(t, err)
		})
	}
}

// Streams returns the streams of all objects that match: one for each namespace that the
// client is narrowed to, or one for the namespace of a, or one for all namespaces. One selection
// gives the same Streams however it is written. A selector that servers do not know is an error:
// see [OwnerIs] and [Index.Is].
func (a API[T]) Streams(selectors ...Selector) ([]wire.Stream, error) {
	return a.target.streams(a.client, selectors)
}

// Watch sends one watch request from resourceVersion on. The sequence ends with the answer. An
// object that does not fit T comes as a [*wire.DecodeError], and the sequence goes on. Package watch lists
// before it watches, and watches again.
func (a API[T]) Watch(
	ctx context.Context, resourceVersion string, selectors ...Selector,
) iter.Seq2[WatchEvent[T], error] {
	return func(yield func(WatchEvent[T], error) bool) {
		for frame, err := range watchFrames(ctx, a.client, a.target, resourceVersion, selectors) {
			event := WatchEvent[T]{Type: frame.Type}
			if err == nil {
				event.Object, err = a.Decode(frame.Object)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// Logs opens the log of a container of a Pod. The caller closes the stream. The stream ends with the
// log, or when ctx ends. A stream that follows can be silent for any time.
func (a API[T]) Logs(ctx context.Context, name string, options LogOptions) (io.ReadCloser, error) {
	return openLog(ctx, a.client, a.target, name, options)
}

// GetScale reads the scale subresource of the object of that name.
func (a API[T]) GetScale(ctx context.Context, name string) (*Scale, error) {
	return getScale(ctx, a.client, a.target, name)
}

// Decode returns the object that data encodes, as the server sent it, with its kind filled
// in. An error is a [*wire.DecodeError].
func (a API[T]) Decode(data []byte) (*T, error) {
	t := new(T)
	if err := a.target.decoder(a.client).decode(data, a.object(t)); err != nil {
		return nil, err
	}
	return t, nil
}

// Named returns a T that has only its identity.
func (a API[T]) Named(namespace, name string, uid types.UID, resourceVersion string) *T {
	t := new(T)
	obj := a.object(t)
	obj.GetObjectKind().SetGroupVersionKind(a.target.resource.GroupVersionKind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(uid)
	obj.SetResourceVersion(resourceVersion)
	return t
}
