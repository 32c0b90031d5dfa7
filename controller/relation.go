package controller

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// relation connects a watched kind with the reconciled kind.
type relation interface {
	// check returns an error unless the relation can connect the two resources.
	check(watched, reconciled kube.Resource) error
	// index returns the index of the reconciled kind that the relation needs, or nil.
	index() *kube.Index
	// writes returns the verbs with which a program usually writes the watched objects. It is nil for
	// objects that are not children.
	writes() []kube.Verb
	// isSlow reports whether relatedKeys may take long, or call a function of the author. Then
	// the stream must not wait for relatedKeys.
	isSlow() bool
	// relatedKeys returns the objects of the reconciled kind that o concerns. It may return some of
	// them together with an error.
	relatedKeys(ctx context.Context, o watchedObject, to reconciledKind) ([]relatedKey, error)
}

// watchedObject is one state of an object of a watched kind.
type watchedObject struct {
	cluster string
	record  cache.Record
	// content returns the object as JSON.
	content func() ([]byte, error)
}

// reconciledKind is the reconciled kind, as a relation needs it.
type reconciledKind struct {
	resource kube.Resource
	// client reads what the sources of the controller show, and nothing else. It is nil before the
	// controller has opened all streams. Relations that are not slow do not use it.
	client *kube.Client
	// referrers returns the objects that have a value in an index. An empty namespace means
	// all namespaces.
	referrers func(x *kube.Index, cluster, namespace, value string) []relatedKey
	// keyOfUID returns the key of the object that has a uid. It returns false if no object has it.
	keyOfUID func(cluster string, uid types.UID) (kube.Key, bool)
}

// relatedKey is an object to reconcile.
type relatedKey struct {
	kube.Key
	// uid is the uid that the object must have. It is empty if any object of that key is
	// meant.
	uid string
}

// lastingError is an error of [relation.relatedKeys] that would come back for the same state of the
// same object.
type lastingError struct{ err error }

func (e *lastingError) Error() string { return e.err.Error() }
func (e *lastingError) Unwrap() error { return e.err }

func isLasting(err error) bool {
	_, ok := errors.AsType[*lastingError](err)
	return ok
}

// selfRelation connects the reconciled kind with itself.
type selfRelation struct{}

func (selfRelation) check(_, _ kube.Resource) error { return nil }

func (selfRelation) index() *kube.Index { return nil }

func (selfRelation) writes() []kube.Verb { return nil }

func (selfRelation) isSlow() bool { return false }

func (selfRelation) relatedKeys(_ context.Context, o watchedObject, _ reconciledKind) ([]relatedKey, error) {
	return []relatedKey{{Key: kube.Key{Cluster: o.cluster, Namespace: o.record.Namespace, Name: o.record.Name}}}, nil
}
