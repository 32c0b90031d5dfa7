package cache

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// matcher selects the objects that a list asks for.
type matcher struct {
	namespace string
	// labels is the label selector, and fields is the field selector.
	labels  labels.Selector
	fields  fields.Selector
	matches []wire.Match
}

// matcherOf returns the matcher of a list. It returns false if only the server can decide which
// objects match.
func matcherOf(r *wire.Request) (matcher, bool) {
	m := matcher{namespace: overlay.KeyOf(r.Ref()).Namespace, labels: labels.Everything(), fields: fields.Everything(), matches: r.Matches}
	for parameter := range r.Query {
		switch parameter {
		case "labelSelector", "fieldSelector":
		case "limit": // a list from a store has one page
		default:
			// A version, a shard, or the next page of a list that was begun at the server.
			if r.Query.Get(parameter) != "" {
				return m, false
			}
		}
	}
	var err error
	if expression := r.Query.Get("labelSelector"); expression != "" {
		if m.labels, err = labels.Parse(expression); err != nil {
			return m, false
		}
	}
	if expression := r.Query.Get("fieldSelector"); expression != "" {
		if m.fields, err = fields.ParseSelector(expression); err != nil {
			return m, false
		}
		for _, requirement := range m.fields.Requirements() {
			if requirement.Field != "metadata.name" && requirement.Field != "metadata.namespace" {
				return m, false
			}
		}
	}
	return m, true
}

// filter returns what the store can match by itself, and the conditions that it cannot match.
func (m matcher) filter(store *Store) (f Filter, rest []wire.Match) {
	f = Filter{Namespace: m.namespace, Labels: m.labels}
	for _, each := range m.matches {
		if each.Owner != "" && f.Owner == "" {
			f.Owner, each.Owner = each.Owner, ""
		}
		if each.Index != nil && f.Index == nil {
			if isKept, _ := store.database.HasIndex(each.Index); isKept {
				f.Index, f.Value, each.Index = each.Index, each.Value, nil
			}
		}
		if each.Owner != "" || each.Index != nil {
			rest = append(rest, each)
		}
	}
	return f, rest
}

// matchesRecord reports whether an object matches, apart from the conditions in matches.
func (m matcher) matchesRecord(r Record) bool {
	return (m.namespace == "" || r.Namespace == m.namespace) && m.labels.Matches(r.Labels) && m.matchesFields(r)
}

// matchesFields reports whether an object matches the field selector, which the filter leaves
// out.
func (m matcher) matchesFields(r Record) bool {
	return m.fields.Empty() || m.fields.Matches(fields.Set{"metadata.name": r.Name, "metadata.namespace": r.Namespace})
}

// meetsAll reports whether an object meets all conditions.
func meetsAll(matches []wire.Match, r Record, object []byte) (bool, error) {
	for _, m := range matches {
		if m.Owner != "" && !slices.ContainsFunc(r.Owners, func(o kube.Owner) bool { return o.UID == m.Owner }) {
			return false, nil
		}
		m.Owner = "" // the record has answered that
		if ok, err := m.Matches(object); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}
