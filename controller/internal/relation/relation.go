// Package relation finds the objects to reconcile when an object of a watched kind changes.
//
// A [Relation] connects a watched kind with the reconciled kind. There are five: [Self], [Owner],
// [Label], [Reference] and [Map].
package relation

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Relation connects a watched kind with the reconciled kind.
type Relation interface {
	// Check returns an error unless the relation can connect the two resources.
	Check(watched, reconciled wire.Resource) error
	// Index returns the index of the reconciled kind that the relation needs, or nil.
	Index() *kube.Index
	// WriteVerbs returns the verbs with which a program usually writes the watched objects. It returns
	// nil for objects that are not children.
	WriteVerbs() []wire.Verb
	// IsSlow reports whether Keys may take long, may call a function of the author, or needs objects of other streams.
	// Then the stream must not wait for Keys.
	IsSlow() bool
	// NeedsObjects reports whether a key matters only while its object exists. A function of the author may
	// return keys of other objects.
	NeedsObjects() bool
	// Keys returns the objects of the reconciled kind that o concerns. It may return some of them
	// together with an error.
	Keys(ctx context.Context, o Object, reconciled ReconciledKind) ([]Key, error)
}

// Object is one state of an object of a watched kind.
type Object struct {
	Cluster string
	Record  cache.Record
	// Content returns the object as JSON.
	Content func() ([]byte, error)
}

// ReconciledKind is the reconciled kind, as a relation needs it.
type ReconciledKind struct {
	Resource wire.Resource
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

// baseRelation has the methods of a relation that connects any resources, needs no index, writes nothing and is
// quick. A relation embeds baseRelation, and replaces the methods in which the relation differs.
type baseRelation struct{}

// Check returns nil.
func (baseRelation) Check(_, _ wire.Resource) error { return nil }

// Index returns nil.
func (baseRelation) Index() *kube.Index { return nil }

// WriteVerbs returns nil.
func (baseRelation) WriteVerbs() []wire.Verb { return nil }

// IsSlow returns false.
func (baseRelation) IsSlow() bool { return false }

// NeedsObjects returns true.
func (baseRelation) NeedsObjects() bool { return true }

// Self connects the reconciled kind with itself.
type Self struct{ baseRelation }

// Keys returns the key of o.
func (Self) Keys(_ context.Context, o Object, _ ReconciledKind) ([]Key, error) {
	return []Key{{Key: kube.Key{Cluster: o.Cluster, Namespace: o.Record.Namespace, Name: o.Record.Name}}}, nil
}

// Owner connects a child with its controlling owner, or with all of its owners if IsAny is true.
type Owner struct {
	baseRelation
	IsAny bool
}

// Check returns an error if the reconciled kind cannot own the watched kind.
func (Owner) Check(watched, reconciled wire.Resource) error {
	if watched.ClusterScoped && !reconciled.ClusterScoped {
		return fmt.Errorf("%s live in namespaces and %s outside of them, so one cannot own the other: label them, and write controller.OwnsByLabel",
			reconciled, watched)
	}
	return nil
}

// WriteVerbs returns the verbs of an apply that may create its object.
func (Owner) WriteVerbs() []wire.Verb { return []wire.Verb{wire.VerbCreate, wire.VerbPatch} }

// Keys returns the owners of o.
func (r Owner) Keys(_ context.Context, o Object, reconciled ReconciledKind) (keys []Key, err error) {
	for _, owner := range o.Record.Owners {
		if !owner.Controller && !r.IsAny || owner.Group != reconciled.Resource.Group ||
			owner.Kind != reconciled.Resource.Kind {
			continue
		}
		k := Key{Key: kube.Key{Cluster: o.Cluster, Name: owner.Name}, UID: owner.UID}
		if !reconciled.Resource.ClusterScoped {
			k.Namespace = o.Record.Namespace
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// Reference connects an object with the objects that refer to it, by an index of the reconciled kind.
type Reference struct {
	baseRelation
	By *kube.Index
}

// Check returns an error if the index is missing, or not an index of the reconciled kind.
func (r Reference) Check(watched, reconciled wire.Resource) error {
	if r.By == nil {
		return fmt.Errorf("the index of what refers to %s is nil: make one with kube.NewIndex", watched)
	}
	return r.By.Check(reconciled, wire.Full)
}

// Index returns the index.
func (r Reference) Index() *kube.Index { return r.By }

// IsSlow returns true, because one object may have a great number of referrers.
func (Reference) IsSlow() bool { return true }

// Keys returns the objects that refer to o, either by the name of o from the same namespace, or by
// namespace and name.
func (r Reference) Keys(_ context.Context, o Object, reconciled ReconciledKind) ([]Key, error) {
	namespace, name := o.Record.Namespace, o.Record.Name
	switch {
	case namespace == "":
		return reconciled.Referrers(r.By, o.Cluster, "", name), nil
	case reconciled.Resource.ClusterScoped:
		return reconciled.Referrers(r.By, o.Cluster, "", namespace+"/"+name), nil
	default:
		return append(reconciled.Referrers(r.By, o.Cluster, namespace, name),
			reconciled.Referrers(r.By, o.Cluster, "", namespace+"/"+name)...), nil
	}
}

// Label connects a child with the owner whose uid is the value of the label Name of the child.
type Label struct {
	baseRelation
	Name string
}

// WriteVerbs returns the verbs of an apply that may create its object, and of the deletion in the
// cleanup.
func (Label) WriteVerbs() []wire.Verb {
	return []wire.Verb{wire.VerbCreate, wire.VerbPatch, wire.VerbDelete}
}

// IsSlow returns true, because Keys needs the owners, which are known once all streams are synced.
func (Label) IsSlow() bool { return true }

// Keys returns the owner of o.
func (r Label) Keys(_ context.Context, o Object, reconciled ReconciledKind) ([]Key, error) {
	uid := types.UID(o.Record.Labels.Get(r.Name))
	if uid == "" {
		return nil, nil
	}
	k, ok := reconciled.KeyOfUID(o.Cluster, uid)
	if !ok {
		return nil, nil
	}
	return []Key{{Key: k, UID: uid}}, nil
}

// Map connects objects by a map function of the author.
type Map struct {
	baseRelation
	Watched wire.Resource
	// Function decodes an object and calls the author's function. It returns a panic as an error.
	Function func(ctx context.Context, c *kube.Client, object []byte) ([]kube.Key, error)
}

// IsSlow returns true, because the map function is the author's.
func (Map) IsSlow() bool { return true }

// NeedsObjects returns false: the function of the author decides.
func (Map) NeedsObjects() bool { return false }

// Keys returns the keys that the map function returns for o.
func (m Map) Keys(ctx context.Context, o Object, reconciled ReconciledKind) (keys []Key, err error) {
	object, err := o.Content()
	if err != nil {
		return nil, err
	}
	returned, err := m.Function(ctx, reconciled.Client, object)
	for _, k := range returned {
		switch {
		case k.Name == "": // such as the value of a label that the object does not have
			continue
		case reconciled.Resource.ClusterScoped:
			k.Namespace = ""
		case k.Namespace == "":
			if err == nil {
				err = &LastingError{
					fmt.Errorf("the map function of %s returned a key without a namespace: %q, although %s live in namespaces",
						m.Watched, k.Name, reconciled.Resource),
				}
			}
			continue
		}
		keys = append(keys, Key{Key: k})
	}
	return keys, err
}
