package conversion

import (
	"slices"
)

// maxRead bounds the text of an annotation that is read, in bytes. No API server stores a longer one.
const maxRead = 256 << 10

// A record is the annotation of one version, its home. It has a section for each version that a step connects with home.
// For example, v1, v2 and v3 are a chain. An object in v3 has the record of v2 with two sections:
//
//	v3  what v3 cannot express of the object in v2. It goes back when the object is converted from v3 to v2.
//	v1  what the object in v2 has kept from an earlier conversion from v1, and what did not go back then.
//
// A text that is no record, such as a forged one, is carried along until something has to be kept in its place.
type record struct {
	// text is the text that was read. It is empty for a new record.
	text     string
	sections map[string][]*entry
	// isChanged is true if the sections differ from those of text.
	isChanged bool
}

// parseRecord returns the record of a text.
func parseRecord(text string) *record {
	r := &record{text: text, sections: make(map[string][]*entry)}
	if len(text) > maxRead {
		return r
	}
	object, isObject := parseObject([]byte(text))
	if !isObject {
		return r
	}
	sections := make(map[string][]*entry)
	for version, v := range object {
		list, isList := v.([]any)
		if !isList {
			return r
		}
		for _, each := range list {
			e, isEntry := parseEntry(each)
			if !isEntry {
				return r
			}
			sections[version] = append(sections[version], e)
		}
	}
	r.sections = sections
	return r
}

// setSection sets or removes a section.
func (r *record) setSection(version string, entries []*entry) {
	old := r.sections[version]
	if slices.EqualFunc(old, entries, func(a, b *entry) bool { return a == b }) {
		return
	}
	r.isChanged = true
	if len(entries) == 0 {
		delete(r.sections, version)
	} else {
		r.sections[version] = entries
	}
}

// encode returns the text of the annotation. It is empty if there is nothing to keep.
func (r *record) encode() string {
	if !r.isChanged {
		return r.text
	}
	if len(r.sections) == 0 {
		return ""
	}
	object := make(map[string]any, len(r.sections))
	for version, entries := range r.sections {
		list := make([]any, len(entries))
		for i, e := range entries {
			list[i] = e.value()
		}
		object[version] = list
	}
	return string(appendValue(nil, object))
}

// areSameEntries reports whether two lists of entries have the same text, but for what is left.
func areSameEntries(a, b []*entry) bool {
	return slices.EqualFunc(a, b, func(a, b *entry) bool {
		return a.compare(b) == 0 && areEqual(a.home, b.home) && areEqual(a.back, b.back)
	})
}

// withoutLeft returns the entries without the mark of those that are left.
func withoutLeft(entries []*entry) []*entry {
	all := make([]*entry, len(entries))
	for i, e := range entries {
		all[i] = e.withLeft(false)
	}
	return all
}

// merged returns the entries of d and those of left that are about other places.
func merged(d, left []*entry) []*entry {
	all := slices.Clone(d)
	for _, e := range left {
		if !slices.ContainsFunc(d, e.overlaps) {
			all = append(all, e.withLeft(false))
		}
	}
	slices.SortFunc(all, (*entry).compare)
	return all
}
