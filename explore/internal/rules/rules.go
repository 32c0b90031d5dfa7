// Package rules judges one run of a program by what the program itself did, without a comparison with other runs. A
// mistake that every run has is found in this way.
//
// A [Rule] has a file of its own, and [All] lists the rules:
//
//	rule               file
//	gone               left_object.go, with deletion_order.go
//	at rest            change_at_rest.go, with list_order.go
//	remade             recreation.go
//	ready too early    early_readiness.go
//	what others put    removed_addition.go
//	another's          unrelated_change.go
//	growth             growth.go
//
// [Judge] applies all rules to a [Run], which is plain data. The result is a list of violations:
//
//	violations := rules.Judge(&rules.Run{View: history.NewView(h, options), Requests: requests, Steps: steps})
//	// gone: configmaps/web is left after the user has deleted all objects
//
// The rules share this ground:
//
//   - Whether a program had a reason is judged by what the proxy has delivered or answered to the program, and never by what
//     the server had. What the program did is judged by the versions that the server has stored.
//   - A write counts if the server has stored a change. An apply that is answered with the same resource version is no
//     write.
//   - Only the fields of the program's own field managers count. Leases, Events and managedFields do not count.
//   - A cause is a delivered event, the answer to a read, or a time that has come.
package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// Rule is something that no run of a right program does.
type Rule interface {
	// Describe returns the name of the rule and what it means.
	Describe() Description
	// Violations returns where the run breaks the rule.
	Violations(r *Run) []Violation
}

// Description describes a rule.
type Description struct {
	// Name is the name in entries of accepted differences, such as gone.
	Name string
	// Meaning is a sentence that states what a program that breaks the rule does.
	Meaning string
	// IsCertain is true if one run is enough for a finding. Otherwise two runs have to break the rule.
	IsCertain bool
}

// All returns all rules.
func All() []Rule {
	return []Rule{
		leftObject{},
		changeAtRest{},
		recreation{},
		earlyReadiness{},
		removedAddition{},
		unrelatedChange{},
		growth{},
	}
}

// Names returns the names of all rules.
func Names() (names []string) {
	for _, rule := range All() {
		names = append(names, rule.Describe().Name)
	}
	return names
}

// DescriptionOf returns the description of a rule. It reports whether there is such a rule.
func DescriptionOf(name string) (Description, bool) {
	for _, rule := range All() {
		if d := rule.Describe(); d.Name == name {
			return d, true
		}
	}
	return Description{}, false
}

// Run is a run that has ended. Nobody may change it.
type Run struct {
	*history.View
	// Steps and Faults are the schedule of the run.
	Steps  []Step
	Faults faults.Faults
	// States are the objects at the rest after each step that was made.
	States []history.State
	// Requests are the requests of the program. Deliveries are the events that it received on watches, and Observations
	// the versions of workloads that it received.
	Requests     []proxy.RequestRecord
	Deliveries   []proxy.Delivery
	Observations []proxy.Observation
	// OwnObjects are the objects that the program makes without any sample. They are nil if they are unknown, and are read
	// only if [NeedsOwnObjects] is true.
	OwnObjects map[faults.Object]bool
}

// Step is a step of the user. The names in it are not normalized.
type Step struct {
	Applied []Sample
	Deleted []faults.Object
}

// Sample is an object as the user applies it.
type Sample struct {
	faults.Object
	Content map[string]any
}

// appliedObjects returns the contents of the objects that the user applies, as the user applies them last.
func appliedObjects(steps []Step) map[faults.Object]map[string]any {
	applied := make(map[faults.Object]map[string]any)
	for _, step := range steps {
		for _, sample := range step.Applied {
			applied[sample.Object] = sample.Content
		}
	}
	return applied
}

// isOrdinary reports whether rules can judge the run. The versions must be complete and in the order in which the
// server made them: no fault has set the server back, or stopped a part of the control plane. The program must be able
// to read all objects.
func (r *Run) isOrdinary() bool {
	return len(r.Gaps) == 0 && !r.Faults.HasServerInterruption() && !r.Faults.HasKind(faults.Restored, faults.Unreadable)
}

// successor is a version with the version of the same object before.
type successor struct{ before, after history.Version }

// successors returns the versions of objects that had a version before, in the order of the history. Leases and Events
// are left out, and so are deletions.
func (r *Run) successors() (all []successor) {
	latest := make(map[types.UID]history.Version)
	for _, v := range r.Versions {
		if proxy.IsBackground(v.Resource) {
			continue
		}
		if before, exists := latest[v.UID]; exists && !v.IsDeleted {
			all = append(all, successor{before, v})
		}
		latest[v.UID] = v
	}
	return all
}

// writeOf returns the request of the program that has made a version of an object, or nil. The server answers a write
// that changes nothing, and one that removes the last finalizer, with the version of somebody else. That version came
// before the request.
func (r *Run) writeOf(s successor) *proxy.RequestRecord {
	v := s.after
	isDeletion := v.Content().GetDeletionTimestamp() != nil && s.before.Content().GetDeletionTimestamp() == nil
	if isDeletion || r.IsUser(v.Manager) {
		return nil
	}
	for i, request := range r.Requests {
		isMaker := request.Version == v.ResourceVersion && request.Point.Resource == v.Resource && !v.At.Before(request.Began)
		if isMaker && request.Point.IsWrite() && request.Point.Verb != "delete" {
			return &r.Requests[i]
		}
	}
	return nil
}

// versionKey is a resource, and the resource version of one of its objects.
type versionKey struct{ resource, version string }

// ownVersions returns the versions that the program has made. The version in the answer to a write may be that of
// somebody else: see [Run.writeOf].
func (r *Run) ownVersions() map[versionKey]bool {
	own, deletions := make(map[versionKey]bool), make(map[versionKey]bool)
	for _, request := range r.Requests {
		key := versionKey{request.Point.Resource, request.Version}
		if request.Version != "" {
			own[key] = true
			deletions[key] = deletions[key] || request.Point.Verb == "delete"
		}
	}
	former := make(map[types.UID]history.Version)
	for _, v := range r.Versions {
		key := versionKey{v.Resource, v.ResourceVersion}
		if own[key] && !deletions[key] && !v.IsDeleted && r.writeOf(successor{former[v.UID], v}) == nil {
			delete(own, key)
		}
		former[v.UID] = v
	}
	return own
}

// Severity is how bad a violation is.
type Severity int

// The severities. A note stands in the coverage. A warning does not fail an exploration.
const (
	Note Severity = iota
	Warning
	Failure
)

// Violation is a place where a run breaks a rule.
type Violation struct {
	Rule     string
	Severity Severity
	Object   faults.Object
	// Paths are the fields that are concerned, sorted. It is empty if the whole object is concerned.
	Paths []string
	// Effect is what happened to the object or to the fields, in a word: left, deleted, changed, removed, reordered, and
	// so on.
	Effect string
	// Text says what is wrong, and Evidence how the run shows it. Both are sentences without a period.
	Text, Evidence string
	Step           int
	At             time.Time
}

// Key returns a text that is equal for violations that one finding stands for: those of the same rule, kind, effect
// and field paths.
func (v Violation) Key() string {
	return fmt.Sprintf("%s %s %s %s", v.Rule, v.Object.Resource, v.Effect, strings.Join(v.Paths, ","))
}

// Differences returns the violation as it stands in a finding. A violation without paths has one difference.
func (v Violation) Differences() finding.Differences {
	reason := v.Text + ". " + v.Evidence + "."
	if len(v.Paths) == 0 {
		return finding.Differences{{Object: v.Object.String(), Reason: reason}}
	}
	var all finding.Differences
	for _, path := range v.Paths {
		all = append(all, finding.Difference{Object: v.Object.String(), Path: path, Reason: reason})
	}
	return all
}

// Judge returns the violations of all rules in a run, without those that are accepted, in the order of time.
func Judge(r *Run, accepted *history.Accepted) (all []Violation) {
	var kinds []faults.Kind
	for _, f := range r.Faults {
		kinds = append(kinds, f.Kind)
	}
	for _, rule := range All() {
		name := rule.Describe().Name
		for _, v := range rule.Violations(r) {
			v.Rule = name
			if !acceptViolation(accepted, v, kinds) {
				all = append(all, v)
			}
		}
	}
	slices.SortStableFunc(all,
		func(a, b Violation) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key(), b.Key())) })
	return all
}

// acceptViolation counts a violation for the acceptances that match it, and reports whether the violation is intended:
// the whole object, or each of the fields.
func acceptViolation(accepted *history.Accepted, v Violation, kinds []faults.Kind) (isAccepted bool) {
	if len(v.Paths) == 0 {
		return accepted.AcceptViolation(v.Rule, v.Object, "", kinds...)
	}
	for _, path := range v.Paths {
		if !accepted.AcceptViolation(v.Rule, v.Object, path, kinds...) {
			return false
		}
	}
	return true
}

// timeText returns when a version came, such as: in step 2, 1.250 s after the first version.
func (r *Run) timeText(v history.Version) string {
	began := v.At
	if len(r.Versions) > 0 {
		began = r.Versions[0].At
	}
	return fmt.Sprintf("in step %d, %.3f s after the first version of the run", v.Step+1, v.At.Sub(began).Seconds())
}
