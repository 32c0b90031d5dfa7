package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// removedAddition is the rule "what others put": a program does not remove what a stranger has added to an object.
type removedAddition struct{}

func (removedAddition) Describe() Description {
	return Description{
		Name: "what others put", Meaning: "The program removed what somebody else had added to an object.", IsCertain: true,
	}
}

// Violations follows the fields that a stranger owns, from the version that adds them to the next version of the
// program that has other values. Labels, annotations and finalizers of the stranger's domain are nobody else's. Whether
// a program may own a whole list, or a whole spec, is disputed: the removal of an item or of a field is a warning.
func (removedAddition) Violations(r *Run) (all []Violation) {
	if !r.isOrdinary() || !r.Faults.HasKind(faults.StrangerMetadata, faults.StrangerItem, faults.StrangerField) {
		return nil
	}
	isStranger := func(manager string) bool { return manager == faults.ForeignManager }
	added := make(map[types.UID]map[string]string)
	for _, s := range r.successors() {
		uid := s.after.UID
		request := r.writeOf(s)
		if request == nil {
			if s.after.Manager == faults.ForeignManager {
				added[uid] = r.FieldsOf(s.after, isStranger) // the stranger has removed all others itself
			}
			continue
		}
		values := r.Fields(s.after)
		lost := make(map[string][]string) // by the part of the object
		for path, value := range added[uid] {
			if values[path] == value {
				continue
			}
			delete(added[uid], path)
			if isRemovedWithParent(values, path) ||
				s.after.Content().GetDeletionTimestamp() != nil && !strings.HasPrefix(path, "metadata.") {
				continue
			}
			lost[partOf(path)] = append(lost[partOf(path)], path)
		}
		for _, part := range slices.Sorted(maps.Keys(lost)) {
			all = append(all, newRemoval(r, s.after, request, part, lost[part]))
		}
	}
	return all
}

// partOf returns the part of an object to which a path belongs, such as labels.
func partOf(path string) string {
	for _, part := range []string{"labels", "annotations", "finalizers"} {
		if strings.HasPrefix(path, "metadata."+part) {
			return part
		}
	}
	return "the spec"
}

// isRemovedWithParent reports whether the list item in which a field was is gone although the stranger did not add the
// item, such as a whole container.
func isRemovedWithParent(values map[string]string, path string) bool {
	if strings.HasPrefix(path, "metadata.") {
		return false
	}
	last := strings.LastIndex(path, "[")
	if last < 0 {
		return false
	}
	parent := path[:last]
	parent = parent[:max(strings.LastIndex(parent, "]")+1, 0)]
	if parent == "" {
		return false
	}
	for other := range values {
		if strings.HasPrefix(other, parent) {
			return false
		}
	}
	return true
}

// newRemoval returns the violation of a version that lacks what a stranger has added. The managedFields of the version
// often name the stranger as the last manager, because only the entry of the stranger has changed. So the evidence
// names the request.
func newRemoval(r *Run, v history.Version, request *proxy.RequestRecord, part string, paths []string) Violation {
	slices.Sort(paths)
	object := r.Object(v)
	severity := Failure
	if part == "the spec" {
		severity = Warning
	}
	return Violation{
		Severity: severity, Object: object, Paths: paths, Effect: "removed", Step: v.Step, At: v.At,
		Text: fmt.Sprintf("What somebody else had added to %s of %s was removed", part, object),
		Evidence: fmt.Sprintf("A stranger had added it, and it was gone or different %s, after the program had sent %s",
			r.timeText(v), request.Point),
	}
}
