package history

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// State is the objects of a run at one moment.
type State struct {
	objects []Version
	words   *words
}

// ObjectOf returns the resource and the normalized name of an object of the run.
func (s State) ObjectOf(v Version) faults.Object { return s.words.objectOf(v) }

// Objects returns the newest version of each object, by resource, namespace and name.
func (s State) Objects() []Version { return slices.Clone(s.objects) }

func newState(present iter.Seq[Version], w *words) State {
	return State{words: w, objects: slices.SortedFunc(present, func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})}
}

// comparedObject is an object as it is compared between runs.
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
			owned := o.ownershipOf(v)
			object := s.words.objectOf(v)
			groups[object] = append(groups[object], comparedObject{fieldsOf(v, s.words, owned), !owned.isEmpty()})
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

// WrittenBy returns the objects that the operator of the options has written, or that belong to a custom object.
// Finished Jobs, Events and Leases are left out. All custom objects are among the result.
func (s State) WrittenBy(o Options) (written []Version) {
	for _, v := range s.objects {
		if isJudged(v) && !o.ownershipOf(v).isEmpty() {
			written = append(written, v)
		}
	}
	return written
}
