package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// comparedObject is the form of an object that is compared between runs.
type comparedObject struct {
	fields fields
	// isCompared is true if the operator has written the object.
	isCompared bool
}

// comparedObjects returns the objects of a state by their normalized names. Objects of one normalized
// name are numbered in the order of their content.
func (s State) comparedObjects(o Options) map[faults.Object]comparedObject {
	groups := make(map[faults.Object][]comparedObject)
	for _, v := range s.objects {
		if isJudged(v) {
			c := o.claimsOf(v)
			object := s.words.objectOf(v)
			groups[object] = append(groups[object], comparedObject{fieldsOf(v, s.words, c), !c.isEmpty()})
		}
	}
	objects := make(map[faults.Object]comparedObject, len(s.objects))
	for object, group := range groups {
		slices.SortStableFunc(group, func(a, b comparedObject) int { return cmp.Compare(a.fields.text(), b.fields.text()) })
		for i, each := range group {
			numbered := object
			if i > 0 {
				numbered.Name += fmt.Sprintf(" (%d)", i+1)
			}
			objects[numbered] = each
		}
	}
	return objects
}

// sortedObjects returns the keys of a map, sorted.
func sortedObjects[V any](m map[faults.Object]V) []faults.Object {
	return slices.SortedFunc(maps.Keys(m), func(a, b faults.Object) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name))
	})
}
