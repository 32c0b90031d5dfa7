package admission

import (
	"crypto/sha256"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// stablePaths turns the field paths of one object into stable paths, in which each index stands for its element: for
// the keys of the element in a list map, and for its value in any other list. So the stable path of an element does not
// change when another one is added before it.
//
// For example, ports is a list map with the key name, and args is another list. Then spec.ports[1].port is
// spec.ports[{"name":"http"}].port, and spec.args[0] is spec.args["-v"]. Where an object has no element, null is in its
// place. A stable path has the hash of this text, because an element can be large.
type stablePaths struct {
	// places holds the places that paths have led to, by the paths.
	places map[string]*place
}

// place is a value of an object.
type place struct {
	// schema is nil below a field whose schema says nothing.
	schema *crd.Schema
	// value is missing if the object has none.
	value any
	// stable is the stable path of the place.
	stable string
}

// newStablePaths returns the stable paths of an object of a schema.
func newStablePaths(schema *crd.Schema, object any) *stablePaths {
	root := &place{schema: schema, value: jsontree.Missing{}}
	// A type can have a MarshalJSON that fails. Then no element is another one.
	if text, err := kube.Marshal(object); err == nil {
		root.value = jsontree.Parse(text)
	}
	return &stablePaths{map[string]*place{"": root}}
}

// stable returns the stable path of a field path. A part that cannot be read stays as it is.
func (p *stablePaths) stable(path string) string {
	at := p.places[""]
	for n := 0; n < len(path); {
		rest := path[n:]
		end := strings.IndexAny(rest[1:], ".[") + 1
		if rest[0] == '[' {
			end = closingBracket(rest) + 1
			if end == 0 {
				return at.stable + rest
			}
		} else if end == 0 {
			end = len(rest)
		}
		if n+end < len(path) && path[n+end] == '.' {
			end++
		}
		n += end
		next := p.places[path[:n]]
		if next == nil {
			next = at.next(rest[:end])
			p.places[path[:n]] = next
		}
		at = next
	}
	return at.stable
}

// next returns the place of a step from at: name, name., [key], [key]. or an index such as [2].
func (at *place) next(step string) *place {
	name := strings.TrimSuffix(step, ".")
	key, isBracket := strings.CutPrefix(name, "[")
	key = strings.TrimSuffix(key, "]")
	index, err := strconv.Atoi(key)
	if object, isObject := at.value.(map[string]any); !isBracket || err != nil || isObject {
		return &place{jsontree.Property(at.schema, key), jsontree.Member(object, key), at.stable + step}
	}
	next := &place{value: jsontree.Missing{}}
	identity := []byte("null")
	if list, _ := at.value.([]any); index >= 0 && index < len(list) {
		next.value = list[index]
		identity = at.identityOf(next.value)
	}
	if at.schema != nil {
		next.schema = at.schema.Items
	}
	sum := sha256.Sum256(identity)
	next.stable = at.stable + "[" + string(sum[:]) + "]"
	return next
}

// identityOf returns what an element of the list has alone: its keys in a list map, or else its value.
func (at *place) identityOf(element any) []byte {
	if item, isObject := element.(map[string]any); isObject && at.schema != nil && at.schema.ListType == "map" {
		if key, hasKey := jsontree.KeyOf(at.schema, item); hasKey {
			return []byte(key)
		}
	}
	return jsontree.Append(nil, element)
}

// ratchet returns the field errors of an object that are new, and those that an error of the old object excuses: an
// error of the same type, with the same text and the same stable path. Each error of the old object excuses one.
func ratchet(
	all []*field.Error, paths *stablePaths, old []*field.Error, oldPaths *stablePaths,
) (added, excused []*field.Error) {
	type identity struct {
		kind         field.ErrorType
		path, reason string
	}
	excuses := make(map[identity]int)
	for _, each := range old {
		excuses[identity{each.Type, oldPaths.stable(each.Field), each.ErrorBody()}]++
	}
	for _, each := range all {
		is := identity{each.Type, paths.stable(each.Field), each.ErrorBody()}
		if excuses[is] > 0 {
			excuses[is]--
			excused = append(excused, each)
		} else {
			added = append(added, each)
		}
	}
	return added, excused
}
