package rules

import (
	"slices"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// deletesReferrersFirst reports whether the user deletes no object before an object that refers to it. An object refers
// to another one if a text below its spec is the other one's name.
func deletesReferrersFirst(steps []Step) bool {
	applied := appliedObjects(steps)
	isDeleted := make(map[faults.Object]bool)
	for _, step := range steps {
		for _, object := range step.Deleted {
			for other := range isDeleted {
				if applied[object] != nil && other != object && hasText(applied[object]["spec"], other.Name) {
					return false
				}
			}
			isDeleted[object] = true
		}
	}
	return true
}

// SortedForDeletion returns objects in an order in which the user can delete them: each one before the objects to which
// it refers.
func SortedForDeletion(steps []Step, objects []faults.Object) (sorted []faults.Object) {
	applied := appliedObjects(steps)
	rest := slices.Clone(objects)
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(o faults.Object) bool {
			return !slices.ContainsFunc(rest, func(other faults.Object) bool {
				return other != o && applied[other] != nil && hasText(applied[other]["spec"], o.Name)
			})
		})
		next = max(next, 0) // objects that refer to one another have no order
		sorted = append(sorted, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return sorted
}

// hasText reports whether a value, or a value in it, is a text.
func hasText(value any, text string) bool {
	switch value := value.(type) {
	case string:
		return value == text
	case map[string]any:
		for _, inner := range value {
			if hasText(inner, text) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, func(inner any) bool { return hasText(inner, text) })
	}
	return false
}
