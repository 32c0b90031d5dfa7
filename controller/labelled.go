package controller

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube"
)

// OwnsByLabel runs the reconcile of the object whose uid a C has as the value of a label, when that C
// changes: see [kube.OwnedByLabel]. In contrast to an owner reference, a label works across namespaces,
// and between namespaced and cluster-scoped kinds. The label holds the uid, because a name may be
// longer than a label's value. The cache indexes the label.
//
// The garbage collector does not know the label. So the controller needs a [Controller.Finalizer] whose
// cleanup deletes the children:
//
//	children, err := kube.All[corev1.Namespace](c).List(ctx, kube.Label("tenant.example.com/uid", string(tenant.UID)))
//
// A child that somebody else made is not taken over: see [ErrForeignChild].
func OwnsByLabel[C any, P kube.ObjectOf[C]](label string, options ...SourceOption) Option {
	return newWatchOption(P(new(C)), options, func(w *watchedKind) (relation, error) {
		w.labelIndexes = append(w.labelIndexes, label)
		if problems := validation.IsQualifiedName(label); len(problems) > 0 {
			return labelRelation{label}, fmt.Errorf("the label %q of controller.OwnsByLabel is not valid: %s", label, problems[0])
		}
		return labelRelation{label}, nil
	})
}

// labelRelation connects a child with the owner whose uid the child has in a label.
type labelRelation struct{ label string }

func (labelRelation) check(_, _ kube.Resource) error { return nil }

func (labelRelation) index() *kube.Index { return nil }

// writes returns the verbs of an apply that may create its object, and of the deletion in the cleanup.
func (labelRelation) writes() []kube.Verb {
	return []kube.Verb{kube.VerbCreate, kube.VerbPatch, kube.VerbDelete}
}

// isSlow returns true, because relatedKeys needs the owners, which are known once all streams are
// synced.
func (labelRelation) isSlow() bool { return true }

func (r labelRelation) relatedKeys(_ context.Context, o watchedObject, to reconciledKind) ([]relatedKey, error) {
	uid := o.record.Labels.Get(r.label)
	if uid == "" {
		return nil, nil
	}
	k, ok := to.keyOfUID(o.cluster, types.UID(uid))
	if !ok {
		return nil, nil
	}
	return []relatedKey{{Key: k, uid: uid}}, nil
}

// ownerLabels returns the labels of [OwnsByLabel].
func ownerLabels(watched []*watchedKind) (labels []string) {
	for _, w := range watched {
		if r, ok := w.relation.(labelRelation); ok {
			labels = append(labels, r.label)
		}
	}
	return labels
}

// uidIndex finds the objects of the reconciled kind by uid. A nil *uidIndex finds none.
type uidIndex struct {
	mu   sync.Mutex
	keys map[ownerUID]kube.Key
}

type ownerUID struct {
	cluster string
	uid     types.UID
}

// newUIDIndex returns an index if a relation of watched needs one, and nil otherwise.
func newUIDIndex(watched []*watchedKind) *uidIndex {
	if len(ownerLabels(watched)) == 0 {
		return nil
	}
	return &uidIndex{keys: make(map[ownerUID]kube.Key)}
}

// record records a change of the object k of the reconciled kind.
func (x *uidIndex) record(k kube.Key, c Change) {
	if x == nil || c.Type == Modified {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	id := ownerUID{k.Cluster, c.Record().UID}
	if c.Type == Deleted {
		delete(x.keys, id)
	} else {
		x.keys[id] = k
	}
}

// key returns the key of the object that has a uid. It returns false if no object has it.
func (x *uidIndex) key(cluster string, uid types.UID) (kube.Key, bool) {
	if x == nil {
		return kube.Key{}, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	k, ok := x.keys[ownerUID{cluster, uid}]
	return k, ok
}

// claimsByLabel reports whether the object in body has the uid of owner in one of labels.
func claimsByLabel(body []byte, owner types.UID, labels []string) bool {
	if len(labels) == 0 || owner == "" || !bytes.Contains(body, []byte(owner)) {
		return false
	}
	var object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	return kube.Unmarshal(body, &object) == nil && hasOwnerLabel(object.Metadata.Labels, owner, labels)
}

// hasOwnerLabel reports whether one of labels has the uid of owner as its value in values.
func hasOwnerLabel(values map[string]string, owner types.UID, labels []string) bool {
	for _, label := range labels {
		if owner != "" && values[label] == string(owner) {
			return true
		}
	}
	return false
}
