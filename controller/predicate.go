package controller

import (
	"github.com/yare-go/yare/cache"
)

// Change is the change that a predicate decides on. Its Type says which of its records are
// set: Before if it is Modified or Deleted, After if it is Added or Modified.
type Change = cache.Change

// The types of a Change.
const (
	Added    = cache.Added
	Modified = cache.Modified
	Deleted  = cache.Deleted
)

// Predicate tells whether a change may matter. It must be quick, and is called by several
// goroutines. One that panics is taken to have said yes.
type Predicate func(Change) bool

// Any is the predicate that holds if one of these does.
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

// GenerationChanged holds for additions and deletions, and when the spec has changed, as
// the server counts it; also when the deletion has begun. Kinds without a generation, such
// as ConfigMap, never change by it.
func GenerationChanged(c Change) bool {
	return changed(c, func(before, after cache.Record) bool {
		return before.Generation != after.Generation || before.Deleting != after.Deleting
	})
}

// LabelsChanged holds for additions and deletions, and when the labels have changed.
func LabelsChanged(c Change) bool {
	return changed(c, func(before, after cache.Record) bool { return before.Labels != after.Labels })
}

// AnnotationsChanged holds for additions and deletions, and when the annotations have
// changed.
func AnnotationsChanged(c Change) bool {
	return changed(c, func(before, after cache.Record) bool { return before.AnnotationsHash != after.AnnotationsHash })
}

// FinalizersChanged holds for additions and deletions, and when the finalizers have
// changed.
func FinalizersChanged(c Change) bool {
	return changed(c, func(before, after cache.Record) bool { return before.FinalizersHash != after.FinalizersHash })
}

func changed(c Change, differ func(before, after cache.Record) bool) bool {
	return c.Type != Modified || c.Before.UID != c.After.UID || differ(c.Before, c.After)
}
