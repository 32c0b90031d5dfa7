package cache

import (
	"fmt"
	"iter"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/yare-go/yare/internal/ident"
)

// All returns the objects that match when it is called, in no order, whatever happens to the
// store afterwards. It decompresses nothing. It panics if f names an index that the store does
// not keep.
func (s *Store) All(f Filter) iter.Seq[Object] {
	entries := s.candidates(f)
	return func(yield func(Object) bool) {
		m := newMatch(f)
		for _, e := range entries {
			if m.matches(e) && !yield(Object{Record: e.record(), entry: e}) {
				return
			}
		}
	}
}

// candidates returns a superset of the matching entries, taken from the smallest applicable
// index. A content index decides here, because an entry does not have its values.
func (s *Store) candidates(f Filter) []*entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if f.Index != nil {
		x := s.contentIndex(f.Index)
		if x == nil || !x.isReady() {
			panic(fmt.Sprintf("%s: the index %q is not kept: add it with Store.Index", s.stream, f.Index))
		}
		return s.at(x.candidates(f.Value))
	}
	best, found := []uint32(nil), false
	consider := func(slots []uint32) {
		if !found || len(slots) < len(best) {
			best, found = slots, true
		}
	}
	if f.Namespace != "" && s.namespaces != nil {
		consider(s.namespaces.Slots(unique.Make(f.Namespace)))
	}
	if f.Owner != "" {
		u, _ := ident.NewUID(string(f.Owner))
		consider(s.owners.Slots(u))
	}
	if f.Labels != nil && len(s.labels) > 0 {
		requirements, _ := f.Labels.Requirements()
		for _, r := range requirements {
			if v, ok := onlyValue(r); ok && s.labels[r.Key()] != nil {
				consider(s.labels[r.Key()].Slots(v))
			}
		}
	}
	if found {
		return s.at(best)
	}
	all := make([]*entry, 0, s.table.Len())
	for _, e := range s.slots {
		if e != nil {
			all = append(all, e)
		}
	}
	return all
}

// at returns the entries in slots.
func (s *Store) at(slots []uint32) []*entry {
	entries := make([]*entry, len(slots))
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
	// labels are those of the entry at hand: behind a pointer that is used again, they need no
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

func (m *match) matches(e *entry) bool {
	if m.filter.Namespace != "" && e.namespace != m.namespace {
		return false
	}
	if m.filter.Owner != "" && !e.isOwnedBy(m.filter.Owner) {
		return false
	}
	if m.filter.Labels == nil {
		return true
	}
	*m.labels = e.labels()
	return m.filter.Labels.Matches(m.labels)
}
