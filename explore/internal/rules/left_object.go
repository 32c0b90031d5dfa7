package rules

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// leftObject is the rule "gone": no object of the program is left after the user has deleted all samples.
type leftObject struct{}

func (leftObject) Describe() Description {
	return Description{Name: "gone", Meaning: "An object is left after the user has deleted all samples."}
}

// Violations judges runs without faults whose last step deletes the last object of the user. Faults are left to the
// comparison with the references.
func (leftObject) Violations(r *Run) (all []Violation) {
	left := leftAfterDeletion(r)
	if len(left) == 0 || r.OwnObjects == nil {
		return nil
	}
	last := len(r.Steps) - 1
	applied := appliedObjects(r.Steps)
	severity := Failure
	if !deletesReferrersFirst(r.Steps) {
		severity = Note
	}
	for _, v := range left {
		object := r.Object(v)
		if r.OwnObjects[object] || isOwnedByOneOf(v, r.States[last].Objects()) { // it goes with its owner
			continue
		}
		violation := Violation{
			Severity: Failure, Object: object, Effect: "left", Step: last, At: v.At,
			Text: fmt.Sprintf("%s is left after the user has deleted all samples", object),
			Evidence: fmt.Sprintf("The field manager %s made the object, which no sample needs any more",
				quotedManager(r.View, v.UID)),
		}
		finalizers := v.Content().GetFinalizers()
		switch isSample := applied[faults.Object{Resource: v.Resource, Name: v.Name}] != nil; {
		case isSample:
			violation.Severity = severity
			violation.Text = fmt.Sprintf("%s is not gone after the user has deleted it", object)
			violation.Evidence = fmt.Sprintf("The object waits for its finalizer %s", strings.Join(finalizers, ", "))
			if children := childrenOf(r, v.UID, left); len(children) > 0 {
				violation.Evidence += fmt.Sprintf(
					". Its children %s still exist: the garbage collector deletes them only when their owner is gone",
					strings.Join(children, ", "))
			}
		case v.Content().GetDeletionTimestamp() != nil:
			violation.Severity = severity
			violation.Text += fmt.Sprintf(": its deletion waits for its finalizer %s", strings.Join(finalizers, ", "))
		}
		all = append(all, violation)
	}
	return all
}

// childrenOf returns the objects that nobody has deleted and that the object with a uid owns.
func childrenOf(r *Run, owner types.UID, objects []history.Version) (children []string) {
	for _, v := range objects {
		isChild := slices.ContainsFunc(v.Content().GetOwnerReferences(),
			func(reference metav1.OwnerReference) bool { return reference.UID == owner })
		if isChild && v.Content().GetDeletionTimestamp() == nil {
			children = append(children, r.Object(v).String())
		}
	}
	return children
}

// isOwnedByOneOf reports whether one of the objects is an owner of an object.
func isOwnedByOneOf(v history.Version, owners []history.Version) bool {
	return slices.ContainsFunc(v.Content().GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
		return slices.ContainsFunc(owners, func(owner history.Version) bool { return owner.UID == reference.UID })
	})
}

// CanJudgeDeletion reports whether the rule judges a run with these faults. What is left after other faults is judged
// by the comparison with the references.
func CanJudgeDeletion(all faults.Faults) bool {
	return !slices.ContainsFunc(all, func(f faults.Fault) bool {
		return !slices.Contains([]faults.Kind{faults.Deletion, faults.Clones, faults.Pair, faults.ManyChanges}, f.Kind)
	})
}

// DeletesAll reports whether the user deletes objects in a step and has none after the step.
func DeletesAll(steps []Step, step int) bool {
	if step < 0 || len(steps[step].Deleted) == 0 {
		return false
	}
	present := make(map[faults.Object]bool)
	for _, s := range steps[:step+1] {
		for _, sample := range s.Applied {
			present[sample.Object] = true
		}
		for _, object := range s.Deleted {
			delete(present, object)
		}
	}
	return len(present) == 0
}

// NeedsOwnObjects reports whether the judgement of a run depends on [Run.OwnObjects].
func NeedsOwnObjects(r *Run) bool { return len(leftAfterDeletion(r)) > 0 }

// leftAfterDeletion returns the objects that are left after the user has deleted all samples. A run in which the user
// does not do that, or whose faults keep objects, has none.
func leftAfterDeletion(r *Run) []history.Version {
	last := len(r.Steps) - 1
	if !CanJudgeDeletion(r.Faults) || !r.isOrdinary() || len(r.States) <= last || !DeletesAll(r.Steps, last) {
		return nil
	}
	return LeftObjects(r.View, r.States[last], r.Steps)
}

// LeftObjects returns the objects of a state that have to go with the samples: the samples, and what the operator has
// made. Volumes stay, because they hold data. Leases and Events do not count, and neither do objects that built-in
// controllers make. A sample that a finalizer of the user keeps does not count either.
func LeftObjects(w *history.View, state history.State, steps []Step) (left []history.Version) {
	applied := appliedObjects(steps)
	for _, v := range state.Objects() {
		sample := applied[faults.Object{Resource: v.Resource, Name: v.Name}]
		switch {
		case proxy.IsBackground(v.Resource), strings.HasPrefix(v.Resource, "persistentvolume"), history.IsMadeByController(v):
		case sample != nil:
			// A sample that was applied with a finalizer waits for the user.
			isOfUser := func(finalizer string) bool {
				return slices.Contains((&unstructured.Unstructured{Object: sample}).GetFinalizers(), finalizer)
			}
			if finalizers := v.Content().GetFinalizers(); len(finalizers) > 0 && !slices.ContainsFunc(finalizers, isOfUser) {
				left = append(left, v)
			}
		case w.IsOperator(makerOf(w, v.UID)):
			left = append(left, v)
		}
	}
	return left
}

// makerOf returns the field manager that made an object, or an empty text if the first version does not show it.
func makerOf(w *history.View, uid types.UID) string {
	for _, v := range w.Versions {
		if v.UID == uid {
			return v.Manager
		}
	}
	return ""
}

// quotedManager returns the field manager that made an object, in quotes.
func quotedManager(w *history.View, uid types.UID) string { return fmt.Sprintf("%q", makerOf(w, uid)) }
