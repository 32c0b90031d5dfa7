package convert

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// LawReport is what [CheckLaws] has found.
type LawReport struct {
	// Problems are the broken laws, each with the object. They are also the results of functions that do not fit the
	// schema: no API server checks such a result, and nobody can update the object.
	Problems []string
	// Kept holds the fields that only an annotation keeps, by the step, such as "v2 to v1". Paths are sorted, and items of
	// lists and keys of maps are [*], such as .spec.ports[*].name.
	Kept map[string][]string
	// Incomplete holds the reasons of incomplete objects, each once.
	Incomplete []string
	// Conversions and Edits count what was checked.
	Conversions, Edits int
}

// maxEdits bounds the edits of an object in one version that CheckLaws tries.
const maxEdits = 40

// CheckLaws converts each object to all other versions of k and back, and edits what it got. It reports what breaks one
// of the three laws of package conversion. The objects are JSON of any versions of k. The order of items in a list with
// keys is not checked after an edit.
func CheckLaws(k *Kind, objects [][]byte) *LawReport {
	r := &LawReport{Kept: make(map[string][]string)}
	for _, each := range objects {
		o, err := parseObject(each)
		if err != nil {
			r.addProblem("%v: %s", err, each)
			continue
		}
		if k.checks[o.kind.Version] == nil || o.kind.GroupKind() != k.GroupKind() {
			r.addProblem("%s is no version of %s: %s", o.kind, k.GroupKind(), each)
			continue
		}
		for _, v := range k.versions {
			if target := v.Resource.Version; target != o.kind.Version {
				lawCheck{r, k, o, o.encode(), target}.check()
			}
		}
	}
	for step, paths := range r.Kept {
		slices.Sort(paths)
		r.Kept[step] = slices.Compact(paths)
	}
	slices.Sort(r.Incomplete)
	r.Incomplete = slices.Compact(r.Incomplete)
	return r
}

func (r *LawReport) addProblem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// lawCheck checks the laws for one object and one target.
type lawCheck struct {
	report   *LawReport
	kind     *Kind
	original *object
	// text is the JSON of original, in canonical order.
	text   []byte
	target string
}

// check checks the laws. An object that does not fit the schema of its own version does not return as it was:
// what does not fit stays in the annotation.
func (c lawCheck) check() {
	from := c.original.kind.Version
	there := c.convert(c.text, c.target)
	if there == nil {
		return
	}
	returned := c.convert(there, from)
	if returned == nil {
		return
	}
	again := c.convert(returned, c.target)
	doesFit := c.fits(from, c.original)
	if doesFit && !bytes.Equal(returned, c.text) {
		c.report.addProblem("%s to %s and back changes the object: %s becomes %s, by %s",
			from, c.target, c.text, returned, there)
	}
	if !bytes.Equal(there, again) {
		c.report.addProblem("%s to %s, back and again gives another object: %s becomes %s and then %s",
			from, c.target, c.text, there, again)
	}
	target, err := parseObject(there)
	if err != nil {
		return
	}
	c.addKept(target)
	if path := c.kind.stepsBetween(c.target, from); len(path) == 1 && doesFit {
		if check := c.kind.checks[c.target]; !c.original.isPart && !c.fits(c.target, target) {
			c.report.addProblem(
				"the function from %s to %s gives a value that does not fit the schema of %s at %s: %s becomes %s",
				from, c.target, c.target,
				check.misfit(check.root, target.content, ""), c.text, there)
			return
		}
		c.checkEdits(path[0], target)
	}
}

// convert returns an object in another version, or nil if the object or its conversion is incomplete.
func (c lawCheck) convert(object []byte, target string) []byte {
	c.report.Conversions++
	result, err := c.kind.Convert(object, target)
	if err != nil {
		c.report.addProblem("%v: %s", err, object)
		return nil
	}
	for _, f := range result.Failures {
		c.report.Incomplete = append(c.report.Incomplete, fmt.Sprintf("%s to %s: %v", f.From, f.To, f.Err))
	}
	if result.IsIncomplete {
		return nil
	}
	return result.Object
}

// fits reports whether the content of an object fits the schema of a version.
func (c lawCheck) fits(version string, o *object) bool {
	check := c.kind.checks[version]
	return check.misfit(check.root, o.content, "") == "" || o.isPart && check.fitsMembers(check.root, o.content, true)
}

// addKept adds the fields that only the annotations of an object keep.
func (c lawCheck) addKept(target *object) {
	for _, d := range c.kind.stepsBetween(c.original.kind.Version, c.target) {
		step := d.from + " to " + d.to
		for _, e := range target.record(d.from).sections[d.to] {
			if e.original != (jsontree.Missing{}) && !e.hasOrder {
				c.report.Kept[step] = append(c.report.Kept[step], e.generalPath(c.kind.checks[d.from].root))
			}
		}
	}
}

// checkEdits checks that an edit in the target version changes in the original version what the function makes of the
// edit, and nothing else. d is the step back to the original version.
func (c lawCheck) checkEdits(d directedStep, target *object) {
	check, targetCheck := c.kind.checks[d.to], c.kind.checks[d.from]
	before, failed := c.kind.run(d, target, target.content)
	if failed != nil {
		return
	}
	var contents []map[string]any
	targetCheck.eachEdit(targetCheck.root, target.content, func(v any) { contents = append(contents, v.(map[string]any)) })
	step := 1 + len(contents)/maxEdits
	for i := 0; i < len(contents); i += step {
		edited := *target
		edited.content = contents[i]
		if !target.isPart && !c.fits(c.target, &edited) {
			continue // an API server refuses this edit
		}
		after, failed := c.kind.run(d, target, edited.content)
		if failed != nil {
			continue
		}
		text := c.convert(edited.encode(), d.to)
		if text == nil {
			continue
		}
		c.report.Edits++
		got, err := parseObject(text)
		if err != nil {
			continue
		}
		want := afterEdit(check.root, c.original.content, before, after)
		if !areEqualButForOrder(check.root, want, got.content) && len(got.record(d.to).sections[d.from]) == 0 {
			c.report.addProblem("an edit in %s changes more in the original version than the function makes of it: %s is edited to %s and gives %s instead of %s", c.target,
				target.encode(), edited.encode(), text, jsontree.Append(nil, want))
		}
	}
}

// afterEdit returns what the original must become by an edit. The functions give before without the edit, and after
// with it.
func afterEdit(s *crd.Schema, original, before, after any) any {
	if jsontree.Equal(before, after) {
		return original
	}
	originalObject, isOriginal := jsontree.ObjectOrMissing(original)
	beforeObject, isBefore := jsontree.ObjectOrMissing(before)
	if afterObject, isObject := after.(map[string]any); isObject && isOriginal && isBefore {
		result := map[string]any{}
		for _, name := range jsontree.SortedNames(originalObject, beforeObject, afterObject) {
			jsontree.SetMember(result, name, afterEdit(jsontree.Property(s, name), jsontree.Member(originalObject, name),
				jsontree.Member(beforeObject, name), jsontree.Member(afterObject, name)))
		}
		return result
	}
	originalList, isOriginal := jsontree.KeyedListOf(s, original)
	beforeList, isBefore := jsontree.KeyedListOf(s, before)
	afterList, isAfter := jsontree.KeyedListOf(s, after)
	if isOriginal && isBefore && isAfter && after != any(jsontree.Missing{}) {
		result := []any{}
		for _, key := range slices.Compact(
			slices.Sorted(slices.Values(slices.Concat(originalList.Keys, beforeList.Keys, afterList.Keys)))) {
			item := afterEdit(s.Items, originalList.Item(key), beforeList.Item(key), afterList.Item(key))
			if object, isObject := item.(map[string]any); isObject {
				object = maps.Clone(object)
				if !hasKey(s, object, key) {
					maps.Copy(object, jsontree.Parse([]byte(key)).(map[string]any))
				}
				result = append(result, object)
			}
		}
		return result
	}
	return after
}

// areEqualButForOrder reports whether two values are equal, but for the order of lists with keys.
func areEqualButForOrder(s *crd.Schema, a, b any) bool {
	aObject, isA := a.(map[string]any)
	bObject, isB := b.(map[string]any)
	if isA && isB {
		for _, name := range jsontree.SortedNames(aObject, bObject) {
			if !areEqualButForOrder(jsontree.Property(s, name), jsontree.Member(aObject, name), jsontree.Member(bObject, name)) {
				return false
			}
		}
		return true
	}
	aList, isA := jsontree.KeyedListOf(s, a)
	bList, isB := jsontree.KeyedListOf(s, b)
	if isA && isB && a != any(jsontree.Missing{}) && b != any(jsontree.Missing{}) {
		if len(aList.Items) != len(bList.Items) {
			return false
		}
		for key, item := range aList.Items {
			if !areEqualButForOrder(s.Items, item, bList.Item(key)) {
				return false
			}
		}
		return true
	}
	return jsontree.Equal(a, b)
}
