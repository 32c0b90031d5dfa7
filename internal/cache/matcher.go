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
	labels    labels.Selector
	// fields holds the requirements of the field selector on fields of a [Record], and serverFields has the others. Only
	// the server knows what meets the others, and a stream that selects by them.
	fields       fields.Selector
	serverFields string
	matches      []wire.Match
}

// matcherOf returns the matcher of a list. It returns false if only the server can decide which
// objects match.
func matcherOf(r *wire.Request) (matcher, bool) {
	m := matcher{
		namespace: overlay.KeyOf(r.Ref()).Namespace, labels: labels.Everything(), fields: fields.Everything(),
		matches: r.Matches,
	}
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
		all, err := fields.ParseSelector(expression)
		if err != nil {
			return m, false
		}
		m.fields = withFields(all, isInRecord)
		m.serverFields = withFields(all, func(field string) bool { return !isInRecord(field) }).String()
	}
	return m, true
}

// withFields returns the requirements of s on the fields for which isKept returns true.
func withFields(s fields.Selector, isKept func(field string) bool) fields.Selector {
	kept, err := s.Transform(func(field, value string) (string, string, error) {
		if isKept(field) {
			return field, value, nil
		}
		return "", "", nil // leaves the requirement out
	})
	if err != nil {
		return s // the function returns no error
	}
	return kept
}

// isInRecord reports whether a Record has a field.
func isInRecord(field string) bool { return field == "metadata.name" || field == "metadata.namespace" }

// canMatch reports whether the objects of a stream are known to match, or not to match, without the server.
func (m matcher) canMatch(stream wire.Stream) bool {
	return impliesFields(stream.FieldSelector, m.serverFields)
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
// out, apart from serverFields.
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
