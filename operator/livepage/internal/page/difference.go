package page

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/kube"
)

const (
	// maxFieldChanges bounds the fields of one write or change that are kept.
	maxFieldChanges = 24
	// maxValue bounds the text of one value, in bytes.
	maxValue = 160
	// maxPath bounds the text of one path, in bytes.
	maxPath = 240
)

// fieldChange is the difference of one field. Before and After are JSON, cut after maxValue bytes. Each is empty if the
// field was not there.
type fieldChange struct {
	Path, Before, After string
}

// difference is what differs between two states of an object.
type difference struct {
	// Fields are the first fields that differ, and MoreCount is the number of the others.
	Fields    []fieldChange
	MoreCount int
}

// differenceOf returns the difference from one JSON object to another. What the server sets by itself is left out: the
// resource version, the generation and the managed fields. Lists of objects are compared by the names, types or keys of
// their elements where these are unique, and otherwise by position.
//
// The difference from
//
//	{"spec":{"replicas":1,"containers":[{"name":"web","image":"a"}]}}
//
// to
//
//	{"spec":{"replicas":3,"containers":[{"name":"web","image":"b"}]}}
//
// has the fields .spec.containers[web].image ("a" to "b") and .spec.replicas (1 to 3).
func differenceOf(before, after []byte) difference {
	var d difference
	d.compare("", before, after)
	return d
}

// fieldsOf returns the fields of a JSON object as the difference from an object without fields.
func fieldsOf(object []byte) difference {
	var d difference
	d.addLeaves("", object)
	return d
}

// compare adds what differs between two values at path.
func (d *difference) compare(path string, before, after jsontext.Value) {
	if bytes.Equal(before, after) {
		return
	}
	switch kind := before.Kind(); {
	case kind == '{' && kind == after.Kind():
		d.compareMembers(path, membersOf(before), membersOf(after), contested.MemberPath)
	case kind == '[' && kind == after.Kind():
		d.compareLists(path, elementsOf(before), elementsOf(after))
	default:
		d.add(path, before, after)
	}
}

// compareMembers adds what differs between the values of two maps, in the order of their names. pathOf returns how path
// goes on with a name.
func (d *difference) compareMembers(path string, from, to map[string]jsontext.Value, pathOf func(name string) string) {
	for _, name := range unionOfNames(from, to) {
		if at := path + pathOf(name); !isSetByServer(at) {
			d.compare(at, from[name], to[name])
		}
	}
}

// compareLists adds what differs between two lists. Their elements are compared by the first key that gives each of
// them a name of its own, and otherwise by position.
func (d *difference) compareLists(path string, from, to []jsontext.Value) {
	for _, key := range []string{"name", "type", "key", "uid"} {
		fromByName, toByName := byName(from, key), byName(to, key)
		if len(fromByName) == len(from) && len(toByName) == len(to) {
			d.compareMembers(path, fromByName, toByName, pathOfElement)
			return
		}
	}
	for i := range max(len(from), len(to)) {
		d.compare(path+pathOfElement(strconv.Itoa(i)), elementAt(from, i), elementAt(to, i))
	}
}

// addLeaves adds the values of an object that are no objects themselves.
func (d *difference) addLeaves(path string, value jsontext.Value) {
	if value.Kind() != '{' {
		d.add(path, nil, value)
		return
	}
	members := membersOf(value)
	for _, name := range unionOfNames(members, nil) {
		at := path + contested.MemberPath(name)
		if isSetByServer(at) || at == ".apiVersion" || at == ".kind" {
			continue
		}
		d.addLeaves(at, members[name])
	}
}

// add adds a field.
func (d *difference) add(path string, before, after jsontext.Value) {
	if len(d.Fields) == maxFieldChanges {
		d.MoreCount++
		return
	}
	d.Fields = append(d.Fields, fieldChange{shortened(path, maxPath), shownValue(before), shownValue(after)})
}

// byteCount returns how much memory the fields take.
func (d *difference) byteCount() int {
	count := 0
	for _, f := range d.Fields {
		count += 3*16 + len(f.Path) + len(f.Before) + len(f.After)
	}
	return count
}

// isSetByServer reports whether the server sets a field by itself when an object is written.
func isSetByServer(path string) bool {
	return path == ".metadata.resourceVersion" || path == ".metadata.generation" || path == ".metadata.managedFields"
}

// membersOf returns the members of a JSON object. Something else has none.
func membersOf(value jsontext.Value) map[string]jsontext.Value {
	var members map[string]jsontext.Value
	if len(value) == 0 || kube.Unmarshal(value, &members) != nil {
		return nil
	}
	return members
}

// elementsOf returns the elements of a JSON list. Something else has none.
func elementsOf(value jsontext.Value) []jsontext.Value {
	var elements []jsontext.Value
	if kube.Unmarshal(value, &elements) != nil {
		return nil
	}
	return elements
}

// unionOfNames returns the names of the members of two objects, sorted.
func unionOfNames(a, b map[string]jsontext.Value) []string {
	names := make([]string, 0, len(a)+len(b))
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, isInBoth := a[name]; !isInBoth {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// byName returns the elements of a list by the text at key. An element without the text is left out. Of several
// elements with one text only the last one is returned.
func byName(list []jsontext.Value, key string) map[string]jsontext.Value {
	elements := make(map[string]jsontext.Value, len(list))
	for _, element := range list {
		if element.Kind() != '{' {
			continue
		}
		if name, ok := textOf(membersOf(element)[key]); ok {
			elements[name] = element
		}
	}
	return elements
}

// textOf returns the text that a JSON value encodes. It reports whether the value is a text.
func textOf(value jsontext.Value) (text string, ok bool) {
	if value.Kind() != '"' {
		return "", false
	}
	decoded, err := jsontext.AppendUnquote(nil, value)
	return string(decoded), err == nil
}

// elementAt returns an element of a list, or nothing behind its end.
func elementAt(list []jsontext.Value, i int) jsontext.Value {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// pathOfElement returns how a path goes on with the name or the position of an element of a list.
func pathOfElement(name string) string { return "[" + name + "]" }

// shownValue returns the JSON of a value, cut after maxValue bytes. It returns nothing for no value. The JSON of API
// servers and of the client has no spaces between its values.
func shownValue(value jsontext.Value) string {
	return shortened(string(value[:min(len(value), 2*maxValue)]), maxValue)
}

// shortened returns text in memory of its own, cut after limit bytes, with "…" in place of the rest.
//
//go:noinline
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return strings.Clone(text)
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
