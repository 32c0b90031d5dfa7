package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// unrelatedChange is the rule "another's": a program does not delete or change a child of an object that nobody has
// changed.
type unrelatedChange struct{}

func (unrelatedChange) Describe() Description {
	return Description{Name: "another's", Meaning: "The program deleted or changed a child of an object to which the user did nothing, when the user acted on another object.", IsCertain: true}
}

// Violations judges runs with two objects of a kind, in the steps in which the user does something to one of them.
// Nothing happens to the other one, so that its children stay, and keep their values. Children that end by themselves
// do not count. Clones of an object share what they refer to, and so may change with one another: of clones only
// deletions are judged.
func (unrelatedChange) Violations(r *Run) (all []Violation) {
	if !r.isOrdinary() || !r.Faults.HasKind(faults.Clones, faults.Pair) {
		return nil
	}
	samples := sampleUIDs(r)
	isUntouched := func(v history.Version) bool {
		owner, isOfSample := samples[controllerOf(v)]
		return isOfSample && v.Step > 0 && !isTouched(r, owner, v.Step) && isUndeletedAt(r, controllerOf(v), v)
	}
	for _, v := range r.Versions {
		if !v.IsDeleted || v.Resource == "pods" || history.IsFinishedJob(v) || !isUntouched(v) || !isDeletedByProgram(r, v) {
			continue
		}
		object := r.Object(v)
		all = append(all, Violation{
			Severity: Failure, Object: object, Effect: "deleted", Step: v.Step, At: v.At,
			Text: fmt.Sprintf("%s was deleted, and it is the child of another object", object),
			Evidence: fmt.Sprintf("In step %d the user did nothing to %s, which is its only controller",
				v.Step+1, samples[controllerOf(v)]),
		})
	}
	if !r.Faults.HasKind(faults.Pair) {
		return all
	}
	for _, s := range r.successors() {
		if paths := changedOwnPaths(r, s); isUntouched(s.after) && len(paths) > 0 && r.writeOf(s) != nil {
			object := r.Object(s.after)
			all = append(all, Violation{
				Severity: Failure, Object: object, Paths: paths, Effect: "changed", Step: s.after.Step, At: s.after.At,
				Text: fmt.Sprintf("%s was changed, and it is the child of another object", object),
				Evidence: fmt.Sprintf("The program changed %s. In step %d the user did nothing to %s, which is its only controller",
					changesText(r, s, paths), s.after.Step+1, samples[controllerOf(s.after)]),
			})
		}
	}
	return all
}

// changesText returns fields with their former and new values, such as: data.text from "hello" to "good bye".
func changesText(r *Run, s successor, paths []string) string {
	before, after := r.Fields(s.before), r.Fields(s.after)
	var texts []string
	for _, path := range paths {
		texts = append(texts, fmt.Sprintf("%s from %s to %s",
			path, cmp.Or(before[path], "nothing"), cmp.Or(after[path], "nothing")))
	}
	return strings.Join(texts, ", ")
}

// isTouched reports whether the user deletes an object in a step, or changes any object that was there before the step:
// others may refer to that object.
func isTouched(r *Run, object faults.Object, step int) bool {
	for _, sample := range r.Steps[step].Applied {
		if _, wasThere := appliedObjects(r.Steps[:step])[sample.Object]; wasThere {
			return true
		}
	}
	return slices.Contains(r.Steps[step].Deleted, object)
}

// changedOwnPaths returns the fields of the program that have other values, sorted.
func changedOwnPaths(r *Run, s successor) (paths []string) {
	own := r.FieldsOf(s.before, r.IsOperator)
	for path := range r.FieldsOf(s.after, r.IsOperator) {
		own[path] = ""
	}
	return slices.DeleteFunc(changedPaths(r.View, s), func(path string) bool { _, isOwn := own[path]; return !isOwn })
}

// sampleUIDs returns the objects that the user has applied, by their uids.
func sampleUIDs(r *Run) map[types.UID]faults.Object {
	applied, uids := appliedObjects(r.Steps), make(map[types.UID]faults.Object)
	for _, v := range r.Versions {
		object := faults.Object{Resource: v.Resource, Name: v.Name}
		if applied[object] != nil && !proxy.IsBackground(v.Resource) {
			uids[v.UID] = object
		}
	}
	return uids
}
