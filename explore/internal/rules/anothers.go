package rules

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// anothers is the rule about the children of another object.
type anothers struct{}

func (anothers) Describe() Description {
	return Description{Name: "another's", Meaning: "The program deleted a child of an object that nobody had changed, when another object was deleted.", IsCertain: true}
}

// Violations judges runs with two objects of a kind, in the steps in which the user deletes one of them and does nothing
// else. Nothing happens to the other one, so that its children stay. Children that end by themselves do not count.
func (anothers) Violations(r *Run) (all []Violation) {
	if !r.isOrdinary() || !r.hasFaultOf(faults.Pair) {
		return nil
	}
	samples := sampleUIDs(r)
	isDeletedByUser := func(owner faults.Object, step int) bool { return slices.Contains(r.Steps[step].Deleted, owner) }
	for _, v := range r.Versions {
		owner := controllerOf(v)
		sample, isOfSample := samples[owner]
		isOther := isOfSample && v.Step > 0 && len(r.Steps[v.Step].Applied) == 0 && !isDeletedByUser(sample, v.Step)
		if !v.Deleted || !isOther || v.Resource == "pods" || history.IsFinishedJob(v) || !isDeletedByProgram(r, v) || !livesAt(r, owner, v) {
			continue
		}
		object := r.Object(v)
		all = append(all, Violation{
			Severity: Failure, Object: object, Direction: "deleted", Step: v.Step, At: v.At,
			Text:     fmt.Sprintf("%s was deleted, and it is the child of another object", object),
			Evidence: fmt.Sprintf("The user deleted one object in step %d, and the program deleted a child of the other one, whose only controller is the uid %s", v.Step+1, owner),
		})
	}
	return all
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
