package values

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Field is a field of the declared state, and the values that it takes besides the value of the sample.
type Field struct {
	// Path is made of the names of the field and of the objects that contain the field, such as
	// spec.listeners[0].port.
	Path string
	// Values are the names of the other values: see [Transition.Value].
	Values []string
	// Reason is why the field takes no other value, or why it is only removed. It is empty otherwise.
	Reason string
}

// firstItem is the element of a path that stands for the first item of a list.
const firstItem = "[0]"

// path leads from an object to a field: names of members, and firstItem.
type path []string

// join returns p with one more element.
func (p path) join(element string) path { return append(slices.Clone(p), element) }

// String returns the path as it is written in options: spec.listeners[0].port.
func (p path) String() string {
	var b strings.Builder
	for i, element := range p {
		if i > 0 && element != firstItem {
			b.WriteByte('.')
		}
		b.WriteString(element)
	}
	return b.String()
}

// contains reports whether the field q is the field p, or is below it.
func (p path) contains(q path) bool { return len(p) <= len(q) && slices.Equal(p, q[:len(p)]) }

// field is a field with the values that it takes besides the value of the sample.
type field struct {
	path   path
	values []value
	reason error
}

// value is a value that a field can be set to.
type value struct {
	name     string
	content  any
	isAbsent bool // the field is removed, and content is nil
}

// walker collects the fields of a schema.
type walker struct {
	options Options
	fields  []field
	known   map[string]bool // the fields that were visited, for the check of the options
}

// visitMembers visits the fields of an object.
func (w *walker) visitMembers(in position) {
	object, _ := in.sample.(map[string]any)
	second, _ := in.second.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(in.schema.Properties)) {
		if len(in.path) == 0 && isServerField(name) {
			continue
		}
		sample, present := object[name]
		ofSecond, inSecond := second[name]
		w.visit(position{
			second: ofSecond, isInSecond: inSecond,
			path: in.path.join(name), schema: in.schema.Properties[name], sample: sample, isPresent: present,
			isRequired: slices.Contains(in.schema.Required, name), isInvented: in.isInvented,
		})
	}
}

// isServerField reports whether a member of an object is not part of its declared state.
func isServerField(name string) bool {
	switch name {
	case "apiVersion", "kind", "metadata", "status":
		return true
	}
	return false
}

// visit adds a field, and the fields below it.
func (w *walker) visit(at position) {
	name := at.path.String()
	w.known[name] = true
	contents, isInOptions := w.options.Values[name]
	if isInOptions && len(contents) == 0 {
		w.fields = append(w.fields, field{path: at.path, reason: errKept})
		return
	}
	f := field{path: at.path}
	if isInOptions {
		f.values = optionValues(contents, at)
	} else {
		f.values, f.reason = at.suggest()
	}
	descends := w.visitBelow(at)
	if len(f.values) > 0 || !descends {
		w.fields = append(w.fields, f)
	}
}

// visitBelow visits the fields below a field, and reports whether it visited any.
func (w *walker) visitBelow(at position) bool {
	visited := len(w.known)
	switch {
	case len(at.schema.Properties) > 0 && at.isPresent:
		w.visitMembers(at)
	case len(at.schema.Properties) > 0 && !at.isInvented:
		// One level of objects that the sample does not have: the schema of a Pod has hundreds below.
		if _, err := at.schema.minimal(); err == nil {
			at.isInvented = true
			w.visitMembers(at)
		}
	case at.schema.Items != nil && len(at.schema.Items.Properties) > 0:
		if items, _ := at.sample.([]any); len(items) > 0 {
			item := position{
				path: at.path.join(firstItem), schema: at.schema.Items, sample: items[0], isPresent: true, isRequired: true,
			}
			if others, _ := at.second.([]any); len(others) > 0 {
				item.second, item.isInSecond = others[0], true
			}
			w.visit(item)
		}
	}
	return len(w.known) > visited
}

// sorted returns the fields, with the shortest paths first: fields with short paths are the author's own, while
// fields with long paths are often the fields of a Pod.
func (w *walker) sorted() []field {
	slices.SortStableFunc(w.fields, func(a, b field) int { return cmp.Compare(len(a.path), len(b.path)) })
	return w.fields
}

// withValue returns a copy of an object whose field at a path has a value. Objects on the way that do
// not exist are made minimal. s is the schema of the object.
func withValue(object any, s *Schema, p path, v value) any {
	if len(p) == 0 {
		return v.content
	}
	if p[0] == firstItem {
		items := slices.Clone(object.([]any))
		items[0] = withValue(items[0], s.Items, p[1:], v)
		return items
	}
	members, ok := object.(map[string]any)
	if ok {
		members = maps.Clone(members)
	} else {
		minimal, _ := s.minimal() // the walk leaves objects alone for which this is an error
		members, _ = minimal.(map[string]any)
		if members == nil {
			members = map[string]any{}
		}
	}
	if len(p) == 1 && v.isAbsent {
		delete(members, p[0])
		return members
	}
	members[p[0]] = withValue(members[p[0]], s.Properties[p[0]], p[1:], v)
	return members
}
