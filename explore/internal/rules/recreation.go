package rules

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// recreation is the rule "remade": a program does not delete a child and make it again with the same content.
type recreation struct{}

func (recreation) Describe() Description {
	return Description{
		Name:      "remade",
		Meaning:   "The program deleted a child, and made it again with the same content, while its owner lived.",
		IsCertain: true,
	}
}

// Violations compares each object with the object of its name that the program has deleted before. Pods do not count,
// and neither do Jobs that have finished, because a new one does its work again. Other content is needed where a field
// cannot change.
func (recreation) Violations(r *Run) (all []Violation) {
	// A program that sees the past, or was away while the user did something, may delete a child that was right before. A
	// child that is deleted for another object is made again.
	if !r.isOrdinary() || isBehind(r) || r.Faults.HasKind(faults.Clones, faults.Pair) {
		return nil
	}
	for _, pair := range replacements(r) {
		if isSame := maps.Equal(pair.content(r, pair.before), pair.content(r, pair.after)); !isSame {
			continue
		}
		object := r.Object(pair.after)
		all = append(all, Violation{
			Severity: Failure, Object: object, Effect: "remade", Step: pair.after.Step, At: pair.after.At,
			Text: fmt.Sprintf("%s was deleted and made again with the same content", object),
			Evidence: fmt.Sprintf("The program deleted the object with the uid %s, and created the one with the uid %s %s. Its owner lived all the time",
				pair.before.UID, pair.after.UID, r.timeText(pair.after)),
		})
	}
	return all
}

// isBehind reports whether faults have shown the program a state of the past, or have kept the program from seeing a
// change of the user in time.
func isBehind(r *Run) bool {
	if r.Faults.NeedsStandby() || r.Faults.HasKind(
		faults.Stale, faults.WatchLag, faults.WatchCut, faults.WatchExpired, faults.WatchMissed, faults.WatchTwice) {
		return true
	}
	return slices.ContainsFunc(r.Faults, func(f faults.Fault) bool { return f.Restart == faults.RestartNextStep })
}

// Recreated returns the objects that the program has deleted and made again with other content, such as because a field
// cannot change.
func Recreated(r *Run) (all []string) {
	if !r.isOrdinary() {
		return nil
	}
	for _, pair := range replacements(r) {
		if !maps.Equal(pair.content(r, pair.before), pair.content(r, pair.after)) {
			all = append(all, r.Object(pair.after).String())
		}
	}
	return all
}

// replacement is an object that the program has deleted, with the object of the same name that it has created next.
type replacement struct{ before, after history.Version }

// content returns the fields that the program has written in the second object, with their values in one of the
// objects. For the first object, the program's fields at its end are added.
func (p replacement) content(r *Run, v history.Version) map[string]string {
	values := r.Fields(v)
	content := make(map[string]string)
	for _, each := range []history.Version{p.before, p.after} {
		for path := range r.FieldsOf(each, r.IsOperator) {
			if value, has := values[path]; has {
				content[path] = value
			}
		}
	}
	return content
}

// replacements returns the replacements in the run while the controller of the object lived and had one generation. An
// object that is deleted because of one value, and made again because of the next one, is no replacement.
func replacements(r *Run) (all []replacement) {
	type name struct{ resource, name string }
	deleted := make(map[name]history.Version)
	isKnown := make(map[types.UID]bool)
	for _, v := range r.Versions {
		at := name{v.Resource, v.Name}
		switch {
		case proxy.IsBackground(v.Resource) || v.Resource == "pods" || history.IsMadeByController(v):
		case v.IsDeleted:
			if !history.IsFinishedJob(v) && isDeletedByProgram(r, v) && !hasStrangers(r, v) {
				deleted[at] = v
			}
		case !isKnown[v.UID]:
			isKnown[v.UID] = true
			before, wasDeleted := deleted[at]
			delete(deleted, at)
			owner := controllerOf(v)
			isSameOwner := owner != "" && owner == controllerOf(before) && isUndeletedAt(r, owner, v) &&
				generationAt(r, owner, before) == generationAt(r, owner, v)
			if wasDeleted && r.IsOperator(v.Manager) && isSameOwner && before.Step == v.Step && !isChangedOften(r, v.Step) {
				all = append(all, replacement{before, v})
			}
		}
	}
	return all
}

// isChangedOften reports whether the user applies an object several times in a step, or deletes an object and applies
// others. The program may delete a child because of one value, or because a reference is gone, and make it again
// because of what comes next, while the deletion of the first child goes on.
func isChangedOften(r *Run, step int) bool {
	if step < 0 || step >= len(r.Steps) {
		return false
	}
	if len(r.Steps[step].Deleted) > 0 && len(r.Steps[step].Applied) > 0 {
		return true
	}
	seen := make(map[faults.Object]bool)
	for _, sample := range r.Steps[step].Applied {
		if seen[sample.Object] {
			return true
		}
		seen[sample.Object] = true
	}
	return false
}

// hasStrangers reports whether somebody besides the program and the control plane has written an object. The program
// may replace such an object to undo that.
func hasStrangers(r *Run, v history.Version) bool {
	return slices.ContainsFunc(history.Managers(v), func(m string) bool { return !r.IsOperator(m) })
}

// isDeletedByProgram reports whether a request of the program may have deleted an object, and no fault has.
func isDeletedByProgram(r *Run, v history.Version) bool {
	object, created := r.Object(v), creationTimeOf(r, v.UID)
	isOfFault := func(f faults.Fault) bool { return f.Object != nil && *f.Object == object }
	return !slices.ContainsFunc(r.Faults, isOfFault) &&
		slices.ContainsFunc(r.Requests, func(request proxy.RequestRecord) bool {
			isOfObject := request.Point.Verb == "delete" && request.Name == v.Name || request.Point.Verb == "deletecollection"
			isCarriedOut := request.Code/100 == 2 || request.Code == 0 && !request.Sent.IsZero()
			return request.Point.Resource == v.Resource && isOfObject && isCarriedOut && request.Began.After(created) &&
				request.Began.Before(v.At)
		})
}

// creationTimeOf returns when the first version of an object came.
func creationTimeOf(r *Run, uid types.UID) time.Time {
	for _, v := range r.Versions {
		if v.UID == uid {
			return v.At
		}
	}
	return time.Time{}
}

// isUndeletedAt reports whether an object exists at a version of another object, and nobody has deleted it. The server
// counts the versions of all resources together.
func isUndeletedAt(r *Run, uid types.UID, at history.Version) bool {
	exists := false
	for _, v := range r.Versions {
		if v.UID != uid || ident.IsNewer(v.ResourceVersion, at.ResourceVersion) {
			continue
		}
		exists = true
		if v.IsDeleted || v.Content().GetDeletionTimestamp() != nil {
			return false
		}
	}
	return exists
}

// generationAt returns the generation of an object at a version of another object.
func generationAt(r *Run, uid types.UID, at history.Version) (generation int64) {
	for _, v := range r.Versions {
		if v.UID == uid && !ident.IsNewer(v.ResourceVersion, at.ResourceVersion) {
			generation = v.Content().GetGeneration()
		}
	}
	return generation
}

// controllerOf returns the uid of the controller of an object, or an empty text.
func controllerOf(v history.Version) types.UID {
	if owner := metav1.GetControllerOf(v.Content()); owner != nil {
		return owner.UID
	}
	return ""
}
