package admission

import (
	"strconv"

	"github.com/yare-go/yare/operator/internal/jsontree"
)

// patch is the JSON patch of what a mutator has changed in an object. It compares the decoded request encoded again
// (before) with the result of the mutator encoded (after), as a [difference] does. What the Go type lacks is in neither
// of the two, and stays as the request has it.
type patch struct {
	// text holds the operations, without the closing bracket. It is nil if there are none.
	text []byte
}

// compare adds the operations that change a value at path, a JSON pointer, from before to after. The request has a value
// there too, which can have further members.
func (p *patch) compare(path string, before, after, request any) {
	if jsontree.Equal(before, after) {
		return
	}
	switch after := after.(type) {
	case map[string]any:
		old, isObject := before.(map[string]any)
		if requested, isRequested := request.(map[string]any); isObject && isRequested {
			p.compareObjects(path, old, after, requested)
			return
		}
	case []any:
		old, isList := before.([]any)
		if requested, isRequested := request.([]any); isList && isRequested && len(requested) == len(old) {
			p.compareLists(path, old, after, requested)
			return
		}
	}
	p.add("replace", path, after)
}

// compareObjects adds the operations for the members of an object. Where the encoder has written a zero that the request
// lacks, the whole value is added.
func (p *patch) compareObjects(path string, before, after, request map[string]any) {
	for _, name := range jsontree.SortedNames(before, after) {
		inner := path + "/" + pointerToken(name)
		was, value := jsontree.Member(before, name), jsontree.Member(after, name)
		has, isThere := request[name]
		switch {
		case jsontree.Equal(was, value):
		case value == (any)(jsontree.Missing{}):
			if isThere {
				p.add("remove", inner, value)
			}
		case isThere:
			p.compare(inner, was, value, has)
		default:
			p.add("add", inner, value)
		}
	}
}

// compareLists adds the operations for the elements of a list. An element that is before and after, by its identity,
// keeps what the Go type lacks. Example, with elements that have names:
//
//	before  a b c
//	after   x a c'    x is added at 0, b is removed at 2, and the members of c' that differ are changed at 2
func (p *patch) compareLists(path string, before, after, request []any) {
	identity, hasNames := nameOf, areNamed(before) && areNamed(after)
	if !hasNames {
		identity = func(element any) string { return string(jsontree.Append(nil, element)) }
	}
	places := make(map[string][]int, len(before))
	for i, each := range before {
		key := identity(each)
		places[key] = append(places[key], i)
	}
	// The list is always after[:at], and then before[from:].
	from, at := 0, 0
	replaceUntil := func(i, j int) {
		if !hasNames && i-from == j-at { // an element without a name that was changed in place
			for ; from < i; from, at = from+1, at+1 {
				p.compare(path+"/"+strconv.Itoa(at), before[from], after[at], request[from])
			}
		}
		for ; from < i; from++ {
			p.add("remove", path+"/"+strconv.Itoa(at), jsontree.Missing{})
		}
		for ; at < j; at++ {
			p.add("add", path+"/"+strconv.Itoa(at), after[at])
		}
	}
	for j, each := range after {
		key := identity(each)
		for len(places[key]) > 0 && places[key][0] < from {
			places[key] = places[key][1:]
		}
		if len(places[key]) > 0 {
			i := places[key][0]
			replaceUntil(i, j)
			p.compare(path+"/"+strconv.Itoa(at), before[i], each, request[i])
			from, at = i+1, j+1
		}
	}
	replaceUntil(len(before), len(after))
}

// areNamed reports whether all elements of a list are objects with different names, as containers are.
func areNamed(list []any) bool {
	names := make(map[string]bool, len(list))
	for _, each := range list {
		name := nameOf(each)
		if name == "" || names[name] {
			return false
		}
		names[name] = true
	}
	return true
}

// nameOf returns the member name of an object, or an empty text.
func nameOf(element any) string {
	object, _ := element.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// add adds an operation at path. The operation remove has no value.
func (p *patch) add(operation, path string, value any) {
	separator := byte(',')
	if p.text == nil {
		separator = '['
	}
	p.text = append(append(append(p.text, separator), `{"op":"`...), operation...)
	p.text = jsontree.AppendText(append(p.text, `","path":`...), path)
	if value != (any)(jsontree.Missing{}) {
		p.text = jsontree.Append(append(p.text, `,"value":`...), value)
	}
	p.text = append(p.text, '}')
}
