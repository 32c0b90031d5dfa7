// Package relation finds the objects to reconcile when an object of a watched kind changes.
//
// A [Relation] connects a watched kind with the reconciled kind. There are five: [Self], [Owner],
// [Label], [Reference] and [Map].
package relation

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// Relation connects a watched kind with the reconciled kind.
type Relation interface {
	// Check returns an error unless the relation can connect the two resources.
	Check(watched, reconciled kube.Resource) error
	// Index returns the index of the reconciled kind that the relation needs, or nil.
	Index() *kube.Index
	// WriteVerbs returns the verbs with which a program usually writes the watched objects. It returns
	// nil for objects that are not children.
	WriteVerbs() []kube.Verb
	// IsSlow reports whether Keys may take long, or call a function of the author. Then the stream must
	// not wait for Keys.
	IsSlow() bool
	// Keys returns the objects of the reconciled kind that o concerns. It may return some of them
	// together with an error.
	Keys(ctx context.Context, o Object, to Kind) ([]Key, error)
}

// Object is one state of an object of a watched kind.
type Object struct {
	Cluster string
	Record  cache.Record
	// Content returns the object as JSON.
	Content func() ([]byte, error)
}

// Kind is the reconciled kind, as a relation needs it.
type Kind struct {
	Resource kube.Resource
	// Client reads what the sources of the controller show, and nothing else. It is nil before the
	// controller has opened all streams. Relations that are not slow do not use it.
	Client *kube.Client
	// Referrers returns the objects that have a value in an index. An empty namespace means
	// all namespaces.
	Referrers func(x *kube.Index, cluster, namespace, value string) []Key
	// KeyOfUID returns the key of the object that has a uid. It returns false if no object has it.
	KeyOfUID func(cluster string, uid types.UID) (kube.Key, bool)
}

// Key is the key of an object to reconcile.
type Key struct {
	kube.Key
	// UID is the uid that the object must have. It is empty if any object of the key is meant.
	UID types.UID
}

// LastingError is an error of [Relation.Keys] that would come back for the same state of the same
// object.
type LastingError struct{ Err error }

func (e *LastingError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *LastingError) Unwrap() error { return e.Err }

// IsLasting reports whether err is, or wraps, a [LastingError].
func IsLasting(err error) bool {
	_, ok := errors.AsType[*LastingError](err)
	return ok
}

// usual has the methods of a relation that connects any resources, needs no index, writes nothing and is
// quick. A relation embeds it, and replaces the methods in which it differs.
type usual struct{}

// Check returns nil.
func (usual) Check(_, _ kube.Resource) error { return nil }

// Index returns nil.
func (usual) Index() *kube.Index { return nil }

// WriteVerbs returns nil.
func (usual) WriteVerbs() []kube.Verb { return nil }

// IsSlow returns false.
func (usual) IsSlow() bool { return false }

// Self connects the reconciled kind with itself.
type Self struct{ usual }

// Keys returns the key of o.
func (Self) Keys(_ context.Context, o Object, _ Kind) ([]Key, error) {
	return []Key{{Key: kube.Key{Cluster: o.Cluster, Namespace: o.Record.Namespace, Name: o.Record.Name}}}, nil
}
