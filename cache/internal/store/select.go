package store

import (
	"fmt"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// Filter narrows what [Store.Select] returns. All conditions that are set must match; the zero
// value matches everything.
type Filter struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// Labels is nil for all labels.
	Labels labels.Selector
	// Owner is the UID of one of the owner references, or empty.
	Owner types.UID
	// Index is nil, or an index that was added by [Store.Index]. Value is a value that its function
	// must have returned for an object. An object for which the function panicked matches.
	Index *kube.Index
	Value string
}

// Selection holds the objects that matched a filter when it was made, whatever happens to the store
// afterwards.
type Selection struct {
	filter Filter
	// candidates is a superset of the objects.
	candidates []*Entry
}

// Select returns the objects that match now. It decompresses nothing. It panics if f names an index
// that the store does not keep.
func (s *Store) Select(f Filter) Selection { return Selection{f, s.candidates(f)} }

// All yields the objects, in no order.
func (s Selection) All(yield func(*Entry) bool) {
	m := newMatch(s.filter)
	for _, e := range s.candidates {
		if m.matches(e) && !yield(e) {
			return
		}
	}
}

// candidates returns a superset of the matching entries, taken from the smallest applicable
// index. A content index decides here, because an entry does not have its values.
func (s *Store) candidates(f Filter) []*Entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if f.Index != nil {
		x := s.contentIndex(f.Index)
		if x == nil || !x.isReady() {
			panic(fmt.Sprintf("the index %q is not kept: add it with Store.Index", f.Index))
		}
		return s.at(x.appendCandidates(nil, f.Value))
	}
	best, found := []uint32(nil), false
	consider := func(slots []uint32) {
		if !found || len(slots) < len(best) {
			best, found = slots, true
		}
	}
	if f.Namespace != "" && s.namespaces != nil {
		consider(s.namespaces.Slots(hashOfValue(f.Namespace)))
	}
	if f.Owner != "" {
		consider(s.owners.Slots(hashOfValue(string(f.Owner))))
	}
	if f.Labels != nil && len(s.labels) > 0 {
		requirements, _ := f.Labels.Requirements()
		for _, r := range requirements {
			if v, ok := onlyValue(r); ok && s.labels[r.Key()] != nil {
				consider(s.labels[r.Key()].Slots(hashOfValue(v)))
			}
		}
	}
	if found {
		return s.at(best)
	}
	all := make([]*Entry, 0, s.table.Len())
	for _, e := range s.slots {
		if e != nil {
			all = append(all, e)
		}
	}
	return all
}

// at returns the entries in slots.
func (s *Store) at(slots []uint32) []*Entry {
	entries := make([]*Entry, len(slots))
	for i, slot := range slots {
		entries[i] = s.slots[slot]
	}
	return entries
}

// onlyValue returns the value that r demands, if there is only one.
func onlyValue(r labels.Requirement) (string, bool) {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		values := r.Values()
		return values.UnsortedList()[0], values.Len() == 1
	}
	return "", false
}

// match decides which entries a filter matches, apart from its content index. It must not be
// used concurrently.
type match struct {
	filter    Filter
	namespace unique.Handle[string]
	// labels are the labels of the entry at hand: behind a pointer that is used again, they need no
	// memory of their own for each entry.
	labels *Labels
}

func newMatch(f Filter) match {
	m := match{filter: f, labels: new(Labels)}
	if f.Namespace != "" {
		m.namespace = unique.Make(f.Namespace)
	}
	if f.Labels != nil && f.Labels.Empty() {
		m.filter.Labels = nil
	}
	return m
}

func (m *match) matches(e *Entry) bool {
	if m.filter.Namespace != "" && e.namespace != m.namespace {
		return false
	}
	if m.filter.Owner != "" && !e.isOwnedBy(m.filter.Owner) {
		return false
	}
	if m.filter.Labels == nil {
		return true
	}
	*m.labels = e.Labels()
	return m.filter.Labels.Matches(m.labels)
}
