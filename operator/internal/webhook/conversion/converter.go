package conversion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// maxKept bounds all annotations of conversions of an object, in bytes.
	maxKept = 128 << 10
	// maxAnnotations is the bound of API servers for all annotations of an object, in bytes.
	maxAnnotations = 256 << 10
	// markSize is the place that is left for the mark of an incomplete object, in bytes.
	markSize = 256
)

// A converter converts one object. It is used once.
type converter struct {
	kind   *Kind
	object *object
	result Conversion
}

// convert converts the object, and returns the result.
func (c *converter) convert() Conversion {
	o := c.object
	for _, w := range c.kind.path(c.result.From, c.result.To) {
		c.convertStep(w)
	}
	o.kind.Version = c.result.To
	c.result.Namespace, c.result.Name = o.metadataText("namespace"), o.metadataText("name")
	c.boundAnnotations()
	c.result.Object, c.result.HasKept, c.result.IsIncomplete = o.encode(), o.hasKept(), o.isMarked()
	return c.result
}

// convertStep converts the object along a way. See the documentation of the package for an example with values.
func (c *converter) convertStep(w way) {
	o := c.object
	home := o.content
	given := c.run(w, home)
	o.content = c.putKeptBack(w, given)
	// What the way back will give shows what the object loses.
	back := c.run(w.back(), o.content)
	c.keepDifference(w, home, back)
}

// run returns what the function of a way makes of content.
func (c *converter) run(w way, content map[string]any) map[string]any {
	result, failed := c.kind.run(w, c.object, content)
	if failed != nil {
		c.recordFailure(Failure{From: w.from, To: w.to, Err: failed.err, Stack: failed.stack}, "panic")
	}
	return result
}

// restorer returns what puts kept values back into an object of a version.
func (c *converter) restorer(version string) *restorer {
	return &restorer{check: c.kind.checks[version], isPart: c.object.isPart}
}

// putKeptBack returns the content of the object in the version w.to, with the values that the object had there and that w.from
// cannot express. given is what the function has made.
//
// What does not fit the schema is left in the annotation of w.to. A value that an edit in w.from has replaced is dropped on
// the way to the stored version. On a way away from the stored version the whole section stays in such a case, because the
// stored object still has it: a write that changes nothing must store the same bytes.
func (c *converter) putKeptBack(w way, given map[string]any) map[string]any {
	record := c.object.record(w.to)
	kept := record.sections[w.from]
	if len(kept) == 0 {
		return given
	}
	check := c.kind.checks[w.to]
	r := c.restorer(w.to)
	content := r.restore(kept, given)
	var left []*entry
	switch {
	case c.kind.isTowardsStored(w):
		for _, e := range r.unfit {
			left = append(left, e.withLeft(true))
		}
		slices.SortFunc(left, (*entry).compare)
	case !areSameEntries(kept, difference(check.root, content, given)):
		for _, e := range kept {
			left = append(left, e.withLeft(slices.Contains(r.unfit, e)))
		}
	}
	record.setSection(w.from, left)
	record.writeAnnotations(w.to, c.object)
	return content
}

// keepDifference keeps what the version w.to cannot express of home, the content of the object in w.from. back is what the functions
// give back.
func (c *converter) keepDifference(w way, home, back map[string]any) {
	record := c.object.record(w.from)
	check := c.kind.checks[w.from]
	kept := difference(check.root, home, back)
	if left := record.sections[w.to]; len(left) > 0 {
		r := c.restorer(w.from)
		if areEqual(r.restore(left, back), home) {
			kept = withoutLeft(left) // it explains the object as it is
		} else {
			kept = merged(kept, slices.DeleteFunc(slices.Clone(left), func(e *entry) bool { return !e.isLeft }))
		}
	}
	record.setSection(w.to, kept)
	record.writeAnnotations(w.from, c.object)
	if own, all := c.object.annotationSizes(); own > maxKept || all > maxAnnotations-markSize {
		c.reduceKept(w, record, kept)
	}
}

// reduceKept removes the largest entries of kept until the annotations are within their bounds.
func (c *converter) reduceKept(w way, r *record, kept []*entry) {
	r.setSection(w.to, nil)
	r.writeAnnotations(w.from, c.object)
	own, all := c.object.annotationSizes()
	room := min(maxKept-own, maxAnnotations-markSize-all)
	sizes := make(map[*entry]int)
	total := 0
	for _, e := range kept {
		key, value := e.annotation(w.from, w.to)
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
	r.setSection(w.to, remaining)
	r.writeAnnotations(w.from, c.object)
	if len(remaining) == len(kept) {
		return
	}
	c.recordFailure(Failure{From: w.from, To: w.to, Err: fmt.Errorf("%d bytes to keep do not fit into the annotations of an object", total)}, "size")
}

// recordFailure records a failure, and marks the object as incomplete.
func (c *converter) recordFailure(f Failure, reason string) {
	c.result.Failures = append(c.result.Failures, f)
	if !c.object.isMarked() {
		c.object.setAnnotation(Incomplete, Mark{Home: c.result.From, Reason: reason}.encode())
	}
}

// boundAnnotations removes the largest annotations until an API server accepts the others.
func (c *converter) boundAnnotations() {
	_, all := c.object.annotationSizes()
	if all <= maxAnnotations {
		return
	}
	c.recordFailure(Failure{From: c.result.From, To: c.result.To, Err: fmt.Errorf("the annotations have %d bytes, more than an API server accepts", all)}, "size")
	if len(c.object.annotations[Incomplete]) > markSize { // it is not of yare
		c.object.setAnnotation(Incomplete, Mark{Home: c.result.From, Reason: "size"}.encode())
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
