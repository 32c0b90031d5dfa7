package controller

import (
	"context"
	"fmt"

	"github.com/yare-go/yare/kube"
)

// WatchesReferenced runs the reconcile of the objects that refer to an S when that S changes.
// The index is an index of the reconciled kind. Its function returns what an object refers to: the
// name of each S in the object's own namespace, and namespace/name of each S in another namespace.
//
//	var bySettings = kube.NewIndex("settings", func(w *WebApp) []string { return []string{w.Spec.Settings} })
//
//	controller.New(reconcile, controller.WatchesReferenced[corev1.ConfigMap](bySettings))
//
// The index can be used in lists of the reconciled kind too. An object for which the index
// function panics is reconciled when any S changes.
func WatchesReferenced[S any, P kube.ObjectOf[S]](index *kube.Index, options ...SourceOption) Option {
	return newWatchOption(P(new(S)), options, func(*watchedKind) (relation, error) { return referenceRelation{index}, nil })
}

// referenceRelation connects an object with the objects that refer to it, according to an index.
type referenceRelation struct{ by *kube.Index }

func (r referenceRelation) check(watched, reconciled kube.Resource) error {
	if r.by == nil {
		return fmt.Errorf("the index of what refers to %s is nil: make one with kube.NewIndex", watched)
	}
	return r.by.Check(reconciled, kube.Full)
}

func (r referenceRelation) index() *kube.Index { return r.by }

func (referenceRelation) writes() []kube.Verb { return nil }

// isSlow returns true, because one object may have a great number of referrers.
func (referenceRelation) isSlow() bool { return true }

// relatedKeys returns the objects that refer to o by its name alone, which means their own
// namespace, or by its namespace and name.
func (r referenceRelation) relatedKeys(_ context.Context, o watchedObject, to reconciledKind) ([]relatedKey, error) {
	namespace, name := o.record.Namespace, o.record.Name
	switch {
	case namespace == "":
		return to.referrers(r.by, o.cluster, "", name), nil
	case to.resource.ClusterScoped:
		return to.referrers(r.by, o.cluster, "", namespace+"/"+name), nil
	default:
		return append(to.referrers(r.by, o.cluster, namespace, name), to.referrers(r.by, o.cluster, "", namespace+"/"+name)...), nil
	}
}
