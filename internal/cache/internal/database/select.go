package database

import (
	"unique"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube/wire"
)

// Filter narrows what [Database.Select] returns. All conditions that are set must match; the zero
// value matches everything.
type Filter struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// Labels is nil for all labels.
	Labels labels.Selector
	// Owner is the UID of one of the owner references, or empty.
	Owner types.UID
	// Index is nil, or an index that was added by [Database.Index]. Value is a value that its function
	// must have returned for an object. An object for which the function panicked matches.
	Index wire.Index
	Value string
}

// Selection holds the objects that matched a filter when it was made, whatever happens to the database
// afterwards.
type Selection struct {
	filter Filter
	// candidates is a superset of the objects.
	candidates []*PackedObject
}

// All yields the objects, in no order.
func (s Selection) All(yield func(*PackedObject) bool) {
	m := newFilterMatcher(s.filter)
	for _, p := range s.candidates {
		if m.matches(p) && !yield(p) {
			return
		}
	}
}

// filterMatcher decides which packed objects a filter matches, apart from its content index. It must not be
// used concurrently.
type filterMatcher struct {
	filter    Filter
	namespace unique.Handle[string]
	// labels are the labels of the packed object at hand: behind a pointer that is used again, they need no
	// memory of their own for each packed object.
	labels *Labels
}

func newFilterMatcher(f Filter) filterMatcher {
	m := filterMatcher{filter: f, labels: new(Labels)}
	if f.Namespace != "" {
		m.namespace = unique.Make(f.Namespace)
	}
	if f.Labels != nil && f.Labels.Empty() {
		m.filter.Labels = nil
	}
	return m
}

func (m *filterMatcher) matches(p *PackedObject) bool {
	if m.filter.Namespace != "" && p.namespace != m.namespace {
		return false
	}
	if m.filter.Owner != "" && !p.isOwnedBy(m.filter.Owner) {
		return false
	}
	if m.filter.Labels == nil {
		return true
	}
	*m.labels = p.Labels()
	return m.filter.Labels.Matches(m.labels)
}
