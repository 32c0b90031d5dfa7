package controller

import (
	"github.com/yare-go/yare/cache"
)

// Change describes a change of a watched object. Before is set if Type is Modified or Deleted.
// After is set if Type is Added or Modified.
type Change = cache.Change

// The types of a Change.
const (
	Added    = cache.Added
	Modified = cache.Modified
	Deleted  = cache.Deleted
)

// Predicate reports whether a change matters. It is called concurrently, in the goroutines of
// the streams, so it must not block. A change for which it panics matters.
type Predicate func(Change) bool

// Any returns a predicate that returns true if at least one of predicates returns true.
func Any(predicates ...Predicate) Predicate {
	return func(c Change) bool {
		for _, p := range predicates {
			if p(c) {
				return true
			}
		}
		return false
	}
}

// GenerationChanged reports whether c is an addition or a deletion, metadata.generation has changed,
// or the deletion of the object has begun. The generation counts the changes of the spec. Other
// modifications of kinds without a generation, such as ConfigMap, do not count.
func GenerationChanged(c Change) bool {
	return changed(c, func(before, after cache.Record) bool {
		return before.Generation != after.Generation || before.Deleting != after.Deleting
	})
}

// LabelsChanged reports whether c is an addition or a deletion, or the labels have changed.
func LabelsChanged(c Change) bool {
	return changed(c, func(before, after cache.Record) bool { return before.Labels != after.Labels })
}

// AnnotationsChanged reports whether c is an addition or a deletion, or the annotations have
// changed.
func AnnotationsChanged(c Change) bool {
	return changed(c, func(before, after cache.Record) bool { return before.AnnotationsHash != after.AnnotationsHash })
}

// FinalizersChanged reports whether c is an addition or a deletion, or the finalizers have
// changed.
func FinalizersChanged(c Change) bool {
	return changed(c, func(before, after cache.Record) bool { return before.FinalizersHash != after.FinalizersHash })
}

// changed reports whether c is an addition or a deletion, or its records differ.
func changed(c Change, differ func(before, after cache.Record) bool) bool {
	return c.Type != Modified || c.Before.UID != c.After.UID || differ(c.Before, c.After)
}
