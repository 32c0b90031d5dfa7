package convert

import (
	"slices"
	"strings"

	"github.com/yare-go/yare/operator/internal/jsontree"
)

// maxAnnotationLength bounds the text of an annotation with an entry, in bytes. No API server stores a longer one.
const maxAnnotationLength = 256 << 10

// record holds what the annotations of an object keep of one original version. It has a section for each version that a
// step connects with the original version. For example, v1, v2 and v3 are a chain. In an object in v3, the record of v2
// has two sections:
//
//	v3  what v3 cannot express of the object in v2. It goes back when the object is converted from v3 to v2.
//	v1  what the object in v2 has kept from an earlier conversion from v1, and what did not go back then.
//
// Each entry has an annotation of its own. So an API server can prune one entry when an apply no longer has its field:
// it prunes whole annotations. An annotation that is no entry, such as one that a user has written, is carried along.
type record struct {
	sections map[string][]*entry
	// keys are the keys of the annotations from which the sections were read, or to which they were written last.
	keys []string
	// isChanged is true if the sections differ from these annotations.
	isChanged bool
}

// parseRecord returns the record of a version in the annotations of an object.
func parseRecord(version string, annotations map[string]string) *record {
	r := &record{sections: make(map[string][]*entry)}
	for key, text := range annotations {
		if !strings.HasPrefix(key, Prefix) || len(text) > maxAnnotationLength {
			continue
		}
		if original, isKept := VersionOfAnnotation(key); !isKept || original != version {
			continue
		}
		object, isObject := jsontree.ParseObject([]byte(text))
		to, hasVersion := object["to"].(string)
		if e, isEntry := parseEntry(object); isObject && hasVersion && isEntry {
			r.sections[to] = append(r.sections[to], e)
			r.keys = append(r.keys, key)
		}
	}
	for _, entries := range r.sections {
		slices.SortFunc(entries, (*entry).compareAll)
	}
	return r
}

// setSection sets or removes a section.
func (r *record) setSection(version string, entries []*entry) {
	if slices.Equal(r.sections[version], entries) {
		return
	}
	r.isChanged = true
	if len(entries) == 0 {
		delete(r.sections, version)
	} else {
		r.sections[version] = entries
	}
}

// writeAnnotations writes a changed record to the annotations of an object in place of those with the keys.
func (r *record) writeAnnotations(version string, o *object) {
	if !r.isChanged {
		return
	}
	for _, key := range r.keys {
		o.setAnnotation(key, "")
	}
	r.keys, r.isChanged = nil, false
	for to, entries := range r.sections {
		for _, e := range entries {
			key, value := e.annotation(version, to)
			o.setAnnotation(key, value)
			r.keys = append(r.keys, key)
		}
	}
}

// areSameEntries reports whether two lists of entries have the same text, whether or not they are leftovers.
func areSameEntries(a, b []*entry) bool {
	return slices.EqualFunc(a, b,
		func(a, b *entry) bool { return a.withLeftover(false).compareAll(b.withLeftover(false)) == 0 })
}

// withoutLeftoverMarks returns the entries. None of them is marked as a leftover.
func withoutLeftoverMarks(entries []*entry) []*entry {
	all := make([]*entry, len(entries))
	for i, e := range entries {
		all[i] = e.withLeftover(false)
	}
	return all
}

// mergeEntries returns the entries of kept, and those of leftovers that overlap none of them.
func mergeEntries(kept, leftovers []*entry) []*entry {
	all := slices.Clone(kept)
	for _, e := range leftovers {
		if !slices.ContainsFunc(kept, e.overlaps) {
			all = append(all, e.withLeftover(false))
		}
	}
	slices.SortFunc(all, (*entry).compare)
	return all
}
