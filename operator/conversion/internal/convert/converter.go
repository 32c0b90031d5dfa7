package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yare-go/yare/operator/internal/jsontree"
)

const (
	// maxKept bounds all annotations of conversions of an object, in bytes.
	maxKept = 128 << 10
	// maxAnnotations is the bound of API servers for all annotations of an object, in bytes.
	maxAnnotations = 256 << 10
	// markSize is the place that is left for the mark of an incomplete object, in bytes.
	markSize = 256
)

// converter converts one object. It is used once.
type converter struct {
	kind   *Kind
	object *object
	result Conversion
}

// convert converts the object, and returns the result.
func (c *converter) convert() Conversion {
	o := c.object
	for _, d := range c.kind.stepsBetween(c.result.From, c.result.To) {
		c.convertStep(d)
	}
	o.kind.Version = c.result.To
	c.result.Namespace, c.result.Name = o.metadataText("namespace"), o.metadataText("name")
	c.boundAnnotations()
	c.result.Object, c.result.HasKept, c.result.IsIncomplete = o.encode(), o.hasKept(), o.isMarked()
	return c.result
}

// convertStep converts the object from one version to the next one. See the documentation of the package for an example
// with values.
func (c *converter) convertStep(d directedStep) {
	o := c.object
	original := o.content
	converted := c.run(d, original)
	o.content = c.restoreKeptValues(d, converted)
	// The difference between the original and what the reversed step returns is what the target version cannot express.
	returned := c.run(d.reversed(), o.content)
	c.keepDifference(d, original, returned)
}

// run returns what the function of a step makes of content.
func (c *converter) run(d directedStep, content map[string]any) map[string]any {
	result, failed := c.kind.run(d, c.object, content)
	if failed != nil {
		c.recordFailure(Failure{From: d.from, To: d.to, Err: failed.err, Stack: failed.stack}, "panic")
	}
	return result
}

// restorer returns what puts kept values back into an object of a version.
func (c *converter) restorer(version string) *restorer {
	return &restorer{check: c.kind.checks[version], isPart: c.object.isPart}
}

// restoreKeptValues returns converted, which the function has made for the version d.to, with the kept values that the
// object had there and that d.from cannot express. For example, the function from v2 to v1 gives {"schedule":"0 * * *
// *"}, and an annotation keeps the policy Forbid of v1. The result is {"schedule":"0 * * * *","policy":"Forbid"}.
//
// A kept value that does not fit the schema stays in the annotation of d.to, as a leftover. A step towards the storage
// version drops a kept value that an edit in d.from has replaced. A step away from the storage version keeps the whole
// section in such a case, because the stored object still has the section: a write that changes nothing must store the
// same bytes.
func (c *converter) restoreKeptValues(d directedStep, converted map[string]any) map[string]any {
	record := c.object.record(d.to)
	kept := record.sections[d.from]
	if len(kept) == 0 {
		return converted
	}
	check := c.kind.checks[d.to]
	r := c.restorer(d.to)
	content := r.restore(kept, converted)
	var section []*entry
	switch {
	case c.kind.isTowardsStorage(d):
		for _, e := range r.rejected {
			section = append(section, e.withLeftover(true))
		}
		slices.SortFunc(section, (*entry).compare)
	case !areSameEntries(kept, difference(check.root, content, converted)):
		for _, e := range kept {
			section = append(section, e.withLeftover(slices.Contains(r.rejected, e)))
		}
	}
	record.setSection(d.from, section)
	record.writeAnnotations(d.to, c.object)
	return content
}

// keepDifference keeps what the version d.to cannot express of original, the content of the object in d.from. returned
// is what the reversed step returns.
func (c *converter) keepDifference(d directedStep, original, returned map[string]any) {
	record := c.object.record(d.from)
	check := c.kind.checks[d.from]
	kept := difference(check.root, original, returned)
	if section := record.sections[d.to]; len(section) > 0 {
		r := c.restorer(d.from)
		if jsontree.Equal(r.restore(section, returned), original) {
			kept = withoutLeftoverMarks(section) // the old section still restores the original
		} else {
			kept = mergeEntries(kept, slices.DeleteFunc(slices.Clone(section), func(e *entry) bool { return !e.isLeftover }))
		}
	}
	record.setSection(d.to, kept)
	record.writeAnnotations(d.from, c.object)
	if own, all := c.object.annotationSizes(); own > maxKept || all > maxAnnotations-markSize {
		c.reduceKept(d, record, kept)
	}
}

// reduceKept removes the largest entries of kept until the annotations are within their bounds.
func (c *converter) reduceKept(d directedStep, r *record, kept []*entry) {
	r.setSection(d.to, nil)
	r.writeAnnotations(d.from, c.object)
	own, all := c.object.annotationSizes()
	room := min(maxKept-own, maxAnnotations-markSize-all)
	sizes := make(map[*entry]int)
	total := 0
	for _, e := range kept {
		key, value := e.annotation(d.from, d.to)
		sizes[e] = len(key) + len(value)
		total += sizes[e]
	}
	entries := slices.Clone(kept)
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Or(sizes[a]-sizes[b], a.compare(b)) })
	var remaining []*entry
	for _, e := range entries {
		if room -= sizes[e]; room < 0 {
			break
		}
		remaining = append(remaining, e)
	}
	slices.SortFunc(remaining, (*entry).compare)
	r.setSection(d.to, remaining)
	r.writeAnnotations(d.from, c.object)
	if len(remaining) == len(kept) {
		return
	}
	c.recordFailure(Failure{
		From: d.from, To: d.to, Err: fmt.Errorf("%d bytes to keep do not fit into the annotations of an object", total),
	}, "size")
}

// recordFailure records a failure, and marks the object as incomplete.
func (c *converter) recordFailure(f Failure, reason string) {
	c.result.Failures = append(c.result.Failures, f)
	if !c.object.isMarked() {
		c.object.setAnnotation(Incomplete, Mark{OriginalVersion: c.result.From, Reason: reason}.encode())
	}
}

// boundAnnotations removes the largest annotations until an API server accepts the others.
func (c *converter) boundAnnotations() {
	_, all := c.object.annotationSizes()
	if all <= maxAnnotations {
		return
	}
	c.recordFailure(Failure{
		From: c.result.From, To: c.result.To,
		Err: fmt.Errorf("the annotations have %d bytes, more than an API server accepts", all),
	}, "size")
	if len(c.object.annotations[Incomplete]) > markSize { // it is not of yare
		c.object.setAnnotation(Incomplete, Mark{OriginalVersion: c.result.From, Reason: "size"}.encode())
	}
	_, all = c.object.annotationSizes()
	keys := slices.SortedFunc(maps.Keys(c.object.annotations), func(a, b string) int {
		return cmp.Or(len(c.object.annotations[b])-len(c.object.annotations[a]), strings.Compare(a, b))
	})
	for _, key := range keys {
		if all > maxAnnotations && key != Incomplete {
			all -= len(key) + len(c.object.annotations[key])
			c.object.setAnnotation(key, "")
		}
	}
}
