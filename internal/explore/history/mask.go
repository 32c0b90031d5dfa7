package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/explore/schedule"
)

// Masks are what is not compared between runs that should be equal.
type Masks struct {
	options Options
	// varying holds the paths of the fields that differ between the references.
	varying map[schedule.Object]map[string]bool
}

// Mask returns the masks that follow from the states of reference runs: at least two runs of the same
// steps without faults. Each object and each field that only some of the references have is in the
// error, because a comparison with them would be luck. Masks beside such an error can be used.
func Mask(references []State, o Options) (*Masks, error) {
	m := &Masks{options: o, varying: make(map[schedule.Object]map[string]bool)}
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(references) < 2 {
		return nil, fmt.Errorf("there is %d reference run: what differs between runs shows only in two", len(references))
	}
	objects := make(map[schedule.Object][]comparedObject)
	for _, s := range references {
		for object, compared := range s.comparedObjects(o) {
			objects[object] = append(objects[object], compared)
		}
	}
	var errs []error
	for _, object := range sortedObjects(objects) {
		seen := objects[object]
		if !slices.ContainsFunc(seen, func(c comparedObject) bool { return c.isCompared }) || o.isIgnored(object, "") {
			continue
		}
		if len(seen) < len(references) {
			errs = append(errs, fmt.Errorf("%s is in %d of %d reference runs", object, len(seen), len(references)))
			continue
		}
		errs = append(errs, m.addVarying(object, seen))
	}
	return m, errors.Join(errs...)
}

// addVarying adds the fields of an object that differ between the references.
func (m *Masks) addVarying(object schedule.Object, seen []comparedObject) error {
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
		switch {
		case !owned[path] || m.options.isIgnored(object, path):
		case len(all) < len(seen):
			errs = append(errs, fmt.Errorf("%s: %s is in %d of %d reference runs, as %s", object, path, len(all), len(seen), all[0]))
		case slices.ContainsFunc(all, func(value string) bool { return value != all[0] }):
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

// String returns what is not compared, in lines.
func (m *Masks) String() string {
	var b strings.Builder
	b.WriteString(fixedMasks + "\n")
	for _, field := range m.Varying() {
		fmt.Fprintf(&b, "%s differs between the reference runs\n", field)
	}
	for _, i := range m.options.Ignore {
		fmt.Fprintf(&b, "ignored: %s\n", i)
	}
	return b.String()
}

// Compare returns how a state differs from the state that it should be.
func (m *Masks) Compare(want, got State) []Difference {
	wanted, found := want.comparedObjects(m.options), got.comparedObjects(m.options)
	all := maps.Clone(wanted)
	maps.Copy(all, found)
	var differences []Difference
	for _, object := range sortedObjects(all) {
		w, isWanted := wanted[object]
		g, isFound := found[object]
		switch {
		case !w.isCompared && !g.isCompared, m.options.isIgnored(object, ""):
		case !isFound:
			differences = append(differences, Difference{Object: object, Want: exists})
		case !isWanted:
			differences = append(differences, Difference{Object: object, Got: exists})
		default:
			differences = append(differences, m.compareFields(object, w.fields, g.fields)...)
		}
	}
	return differences
}

// compareFields returns how the fields of an object differ. A field counts if the operator has written
// the field in one of the states.
func (m *Masks) compareFields(object schedule.Object, want, got fields) []Difference {
	all := maps.Clone(want)
	maps.Copy(all, got)
	var differences []Difference
	for _, path := range slices.Sorted(maps.Keys(all)) {
		w, g := want[path], got[path]
		varies := m.varying[object][path] && w.value != "" && g.value != ""
		// An empty object differs from one that has members in the members.
		isParent := w.value == "" && want.hasBelow(path) || g.value == "" && got.hasBelow(path)
		if w.value == g.value || varies || isParent || !w.isOwned && !g.isOwned || m.options.isIgnored(object, path) {
			continue
		}
		differences = append(differences, Difference{object, path, w.value, g.value})
	}
	return differences
}
