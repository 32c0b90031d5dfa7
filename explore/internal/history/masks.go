package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// Masks are the parts of objects left out of the comparison of runs that should be equal.
type Masks struct {
	options Options
	// varying holds the paths of the fields that differ between the references.
	varying map[faults.Object]map[string]bool
}

// NewMasks returns the masks that follow from the states of reference runs: at least two runs of the same
// steps without faults. Each object and each field that only some of the references have is in the
// error, because a comparison with them would be luck. Masks beside such an error can be used.
func NewMasks(references []State, o Options) (*Masks, error) {
	m := &Masks{options: o, varying: make(map[faults.Object]map[string]bool)}
	if len(references) < 2 {
		return nil, fmt.Errorf("there is %d reference run: what differs between runs shows only in two", len(references))
	}
	objects := make(map[faults.Object][]comparedObject)
	for _, s := range references {
		for object, compared := range s.comparedObjects(o) {
			objects[object] = append(objects[object], compared)
		}
	}
	var errs []error
	for _, object := range sortedObjects(objects) {
		seen := objects[object]
		switch {
		case !slices.ContainsFunc(seen, func(c comparedObject) bool { return c.isCompared }):
		case len(seen) == len(references):
			errs = append(errs, m.addVarying(object, seen))
		case !o.Accepted.acceptDifference(object, ""):
			errs = append(errs, fmt.Errorf("%s is in %d of %d reference runs", object, len(seen), len(references)))
		}
	}
	return m, errors.Join(errs...)
}

// addVarying adds the fields of an object that differ between the references.
func (m *Masks) addVarying(object faults.Object, seen []comparedObject) error {
	values := make(map[string][]string)
	owned := make(map[string]bool)
	for _, c := range seen {
		for path, f := range c.fields {
			values[path] = append(values[path], f.value)
			owned[path] = owned[path] || f.isOwned
		}
	}
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(owned)) {
		all := values[path]
		isInAll := len(all) == len(seen)
		varies := slices.ContainsFunc(all, func(value string) bool { return value != all[0] })
		switch {
		case !owned[path] || isInAll && !varies || m.options.Accepted.acceptDifference(object, path):
		case !isInAll:
			errs = append(errs, fmt.Errorf("%s: %s is in %d of %d reference runs, as %s",
				object, path, len(all), len(seen), all[0]))
		default:
			if m.varying[object] == nil {
				m.varying[object] = make(map[string]bool)
			}
			m.varying[object][path] = true
		}
	}
	return errors.Join(errs...)
}

// Varying returns the fields that differ between the references, such as secrets/web: data.password.
func (m *Masks) Varying() []string {
	var all []string
	for _, object := range sortedObjects(m.varying) {
		for _, path := range slices.Sorted(maps.Keys(m.varying[object])) {
			all = append(all, fmt.Sprintf("%s: %s", object, path))
		}
	}
	return all
}

// Compare returns the differences between an expected state and the state of a run with faults of these kinds.
func (m *Masks) Compare(want, got State, kinds ...faults.Kind) []finding.Difference {
	wanted, found := want.comparedObjects(m.options), got.comparedObjects(m.options)
	all := maps.Clone(wanted)
	maps.Copy(all, found)
	var differences []finding.Difference
	for _, object := range sortedObjects(all) {
		w, isWanted := wanted[object]
		g, isFound := found[object]
		switch {
		case !w.isCompared && !g.isCompared:
		case isWanted && isFound:
			differences = append(differences, m.compareFields(object, w.fields, g.fields, kinds)...)
		case m.options.Accepted.acceptDifference(object, "", kinds...):
		case isWanted:
			differences = append(differences, finding.Difference{Object: object.String(), Want: finding.Exists})
		default:
			differences = append(differences, finding.Difference{Object: object.String(), Got: finding.Exists})
		}
	}
	return differences
}

// compareFields returns the differences between the fields of an object in two states. A field counts if the
// operator has written the field in one of the states.
func (m *Masks) compareFields(object faults.Object, want, got fields, kinds []faults.Kind) []finding.Difference {
	all := maps.Clone(want)
	maps.Copy(all, got)
	var differences []finding.Difference
	for _, path := range slices.Sorted(maps.Keys(all)) {
		w, g := want[path], got[path]
		// The members show the difference between an empty object and an object that has members.
		isParent := w.value == "" && want.hasBelow(path) || g.value == "" && got.hasBelow(path)
		if w.value == g.value || isParent || !w.isOwned && !g.isOwned ||
			m.options.Accepted.acceptDifference(object, path, kinds...) {
			continue
		}
		if varies := m.varying[object][path] && w.value != "" && g.value != ""; !varies {
			differences = append(differences,
				finding.Difference{Object: object.String(), Path: path, Want: w.value, Got: g.value})
		}
	}
	return differences
}
