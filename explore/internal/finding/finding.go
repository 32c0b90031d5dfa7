// Package finding has the types of the file that an exploration writes: its findings, and what it has covered. The
// file is one [Record] as JSON:
//
//	{
//	  "coverage": {
//	    "operator": "webapp", "seed": 1, "took": 45000000000,
//	    "runs": 75, "references": 3, "repeats": 2,
//	    "kinds": {"crash": {"done": 12, "total": 12}},
//	    "complete": true
//	  },
//	  "findings": [{
//	    "operator": "webapp", "verdict": "wrong",
//	    "schedule": {"steps": [...], "faults": [{"kind": "crash", "step": 0}]},
//	    "differences": [{"object": "deployments.apps/web", "path": "spec.replicas", "want": "2", "got": "1"}],
//	    "seen": 3, "tries": 3,
//	    "trace": [{"at": 120000000, "step": 0, "lane": "operator", "to": "server", "text": "patch ..."}]
//	  }]
//	}
//
// Durations are in nanoseconds. The schedule of a finding is all that a replay needs.
package finding

import (
	"fmt"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// Verdict is the kind of a problem.
type Verdict string

// The verdicts. Late and Busy are warnings.
const (
	// Destroyed means that an object was deleted, was created twice, or lost a value, unlike in the reference runs. The
	// end state may look right.
	Destroyed Verdict = "destroyed"
	// Exited means that the program ended by itself.
	Exited Verdict = "exited"
	// Wrong means that the state after a step differs from that of the reference runs, for good.
	Wrong Verdict = "wrong"
	// NeedsRestart means that the state after a step was wrong until the program was restarted.
	NeedsRestart Verdict = "needs restart"
	// ChangesAtRest means that a program at rest changed something, when time passed or when the program
	// was restarted.
	ChangesAtRest Verdict = "changes at rest"
	// Late means that the state after a step became right after longer than the references allow.
	Late Verdict = "late"
	// Busy means that the program never came to rest.
	Busy Verdict = "busy"
	// Reread means that an object at rest was read twice in one version, or read and written back, and was not the same.
	Reread Verdict = "reread otherwise"
	// CheckFailed means that a check of the user's own failed.
	CheckFailed Verdict = "check failed"
	// TwoLeaders means that the server carried out a write of a former leader after another replica had
	// taken the lease. The end state may look right.
	TwoLeaders Verdict = "two leaders"
	// GaveUp means that the program has not made a write again that was denied for a time.
	GaveUp Verdict = "gave up"
	// NeverHeld means that a condition of the user's own held in no version of any run.
	NeverHeld Verdict = "never held"
	// BreaksRule means that the program did what no right program does. The rule is named in the finding.
	// MayBreakRule is a warning: some right programs do that.
	BreaksRule   Verdict = "breaks a rule"
	MayBreakRule Verdict = "may break a rule"
)

// IsCertain reports whether one run is enough for a verdict: time cannot undo what has happened.
func (v Verdict) IsCertain() bool { return v == Destroyed || v == TwoLeaders }

// IsAboutState reports whether a verdict is about the state after a step of the user.
func (v Verdict) IsAboutState() bool {
	return v == Wrong || v == NeedsRestart || v == Late || v == GaveUp
}

// IsWarning reports whether a verdict does not fail the exploration.
func (v Verdict) IsWarning() bool { return v == Late || v == Busy || v == MayBreakRule }

// Finding is one problem of an operator.
type Finding struct {
	// Operator names the program, such as ./examples/webapp.
	Operator string  `json:"operator"`
	Verdict  Verdict `json:"verdict"`
	// Rule is the name of the rule that the run breaks, such as gone. It is empty for all other verdicts.
	Rule string `json:"rule,omitempty"`
	// Summary is what is wrong if a rule is broken, in a sentence without its period.
	Summary string `json:"summary,omitempty"`
	// Schedule is the run. Without faults, it has as few steps as show the finding. A replay needs nothing else.
	Schedule Schedule `json:"schedule"`
	// Differences describe what is wrong.
	Differences Differences `json:"differences,omitempty"`
	// StepNumber is the number of the step after which the state differs, as reports show it: counted from 1. It is 0 if
	// the finding is not about the state after a step. The steps of faults and events are indexes, counted from 0.
	StepNumber int `json:"stepNumber,omitempty"`
	// Seen is the number of runs with the same verdict, among Tries runs of the schedule.
	Seen  int `json:"seen"`
	Tries int `json:"tries"`
	// AlsoWith describes other runs that have shown a finding of a rule, such as: crash at patch secrets web.
	AlsoWith []string `json:"alsoWith,omitempty"`
	// IsUnconfirmed is true if the exploration ended before the runs that would have confirmed the finding.
	IsUnconfirmed bool `json:"unconfirmed,omitempty"`
	// Trace holds the events of a run, in the order of time.
	Trace []Event `json:"trace,omitempty"`
}

// IsWarning reports whether the finding does not fail the exploration: its verdict is a warning, or nothing has
// confirmed the finding.
func (f Finding) IsWarning() bool {
	return f.Verdict.IsWarning() || f.IsUnconfirmed && !f.Verdict.IsCertain()
}

// Differences are what is wrong after a step of a run.
type Differences []Difference

// String returns the differences in a line.
func (all Differences) String() string {
	var texts []string
	for _, d := range all {
		texts = append(texts, d.String())
	}
	return strings.Join(texts, "; ")
}

// Difference is one difference between an expected state and the state of a run.
type Difference struct {
	// Object is resource/name, with the name normalized. It is empty if no object is concerned.
	Object string `json:"object,omitempty"`
	// Path is the path of a field, such as spec.replicas. It is empty if the whole object is meant.
	Path string `json:"path,omitempty"`
	// Check is the name of a check of the user's own, which has failed.
	Check string `json:"check,omitempty"`
	// Want and Got are JSON. An empty text means that there is no value. If the whole object
	// is meant, one text is [Exists], and the other text is empty.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
	// Reason is a sentence in place of Want and Got, such as: the object was created twice.
	Reason string `json:"reason,omitempty"`
}

// Exists stands for a whole object in a [Difference].
const Exists = "exists"

// IsSame reports whether two differences concern the same field of the same object, or the same check.
func (d Difference) IsSame(other Difference) bool {
	if d.Check != "" || other.Check != "" {
		return d.Check == other.Check
	}
	return d.Object == other.Object && d.Path == other.Path
}

// String returns the difference in a line.
func (d Difference) String() string {
	switch {
	case d.Check != "":
		return fmt.Sprintf("check %q: %s", d.Check, d.Reason)
	case d.Reason != "":
		return d.Object + ": " + d.Reason
	case d.Path == "" && d.Got == "":
		return d.Object + " is missing"
	case d.Path == "":
		return d.Object + " should not exist"
	case d.Got == "":
		return fmt.Sprintf("%s: %s is missing, want %s", d.Object, d.Path, d.Want)
	case d.Want == "":
		return fmt.Sprintf("%s: %s should not be set, and is %s", d.Object, d.Path, d.Got)
	default:
		return fmt.Sprintf("%s: %s is %s, want %s", d.Object, d.Path, d.Got, d.Want)
	}
}

// Acceptance is a difference that is intended, with the differences below it.
type Acceptance struct {
	// Objects is a resource, such as deployments.apps, or a resource and a normalized name, such as
	// secrets/web. An asterisk stands for any text. Default: all objects.
	Objects string `json:"objects,omitempty"`
	// Path is the path of a field, such as status.lastBackup or spec.containers[name=web].image. An
	// asterisk stands for any text. The path * is the whole object.
	Path string `json:"path"`
	// Faults are the kinds of the faults in whose runs the difference is intended. Default: all runs,
	// and the reference runs.
	Faults []faults.Kind `json:"faults,omitempty"`
	// Rule is the name of a rule, such as gone. The entry accepts what breaks the rule, and no other difference.
	// Default: differences, and all rules.
	Rule string `json:"rule,omitempty"`
	// Reason is why the difference is intended.
	Reason string `json:"reason"`
}

// String returns the objects, the path and the reason.
func (a Acceptance) String() string {
	what := a.Path
	if a.Objects != "" {
		what = a.Objects + " " + a.Path
	}
	if a.Rule != "" {
		what += ", rule " + a.Rule
	}
	return fmt.Sprintf("%s (%s)", what, a.Reason)
}

// Lane is the actor of an event in a trace.
type Lane string

// The lanes.
const (
	User     Lane = "user"
	Operator Lane = "operator"
	Server   Lane = "server"
)

// Event is one event of a trace.
type Event struct {
	// At is the time since the start of the run.
	At time.Duration `json:"at"`
	// Step is the index of the step of the user, counted from 0. It is negative before the first step.
	Step int `json:"step"`
	// Lane is where the event happens. To is the lane that an arrow leads to; it is empty for an event
	// without an arrow.
	Lane Lane   `json:"lane"`
	To   Lane   `json:"to,omitempty"`
	Text string `json:"text"`
	// IsFault is true if the event is a fault.
	IsFault bool `json:"fault,omitempty"`
}

// Coverage counts what an exploration has run, each count with its denominator.
type Coverage struct {
	// The exploration.

	Operator string        `json:"operator"`
	Seed     uint64        `json:"seed"`
	Took     time.Duration `json:"took"`
	// IsComplete is true if all planned runs were made before the budget ended.
	IsComplete bool `json:"complete"`
	// Stopped is why the exploration could not go on. It is empty if the exploration ended as planned.
	Stopped string `json:"stopped,omitempty"`

	// The runs.

	// Runs counts all runs. References and Repeats are among them.
	Runs       int `json:"runs"`
	References int `json:"references"`
	Repeats    int `json:"repeats"`
	// FailedRuns are the runs that could not be made, with the reason.
	FailedRuns []string `json:"failedRuns,omitempty"`
	// NotSeenAgain are the findings that a replay has not seen.
	NotSeenAgain []string `json:"notSeenAgain,omitempty"`

	// The faults.

	// Kinds counts, by the kind of the fault, the planned runs, and the runs in which the fault happened.
	Kinds map[faults.Kind]Count `json:"kinds"`
	// Points counts the writes of the reference runs, and the writes before which a crash happened.
	Points Count `json:"points"`
	// Unrepeated are the writes that only one reference run has made, so that no fault can happen at
	// them.
	Unrepeated []string `json:"unrepeated,omitempty"`
	// NeverHappened are the kinds of faults that can happen to this program, and have happened in no run.
	NeverHappened []faults.Kind `json:"neverHappened,omitempty"`
	// NotReached are the faults that did not happen in three tries.
	NotReached []string `json:"notReached,omitempty"`
	// NotApplicable are the kinds of faults for which this program gives no opportunity, with the reason.
	NotApplicable map[faults.Kind]string `json:"notApplicable,omitempty"`

	// The changes of the declared state.

	// Fields counts the fields of the custom resources, and the fields that had another value in a run.
	Fields Count `json:"fields"`
	// FieldsWithoutValues are the fields that had no other value, with the reason.
	FieldsWithoutValues map[string]string `json:"fieldsWithoutValues,omitempty"`
	// Transitions counts the changes of the declared state that the schema suggests, and the changes made by the
	// user in a run.
	Transitions Count `json:"transitions"`
	// Refused counts the transitions among them that the API server refused.
	Refused int `json:"refused"`
	// RefusedWrites are the program's writes that the API server found invalid after a change of the declared
	// state, such as changes of immutable fields. The program has reported each of them, and recovered when the
	// change was undone.
	RefusedWrites []string `json:"refusedWrites,omitempty"`

	// The comparison of states.

	// ComparedSteps counts the steps of the user, and the steps after which the state of a run is compared with the
	// references. The others have no stable reference.
	ComparedSteps Count `json:"comparedSteps"`
	// Uncompared are the changes of the samples after which the state was not compared, because nobody knows the right
	// state, with the reason. The state after the change was undone was compared.
	Uncompared []string `json:"uncompared,omitempty"`
	// Masked are the fields that no comparison looks at, because they differ between references.
	Masked []string `json:"masked,omitempty"`
	// OutOfBounds are the writes in other namespaces than the run's namespace. They were refused.
	OutOfBounds []string `json:"outOfBounds,omitempty"`
	// ClusterScoped are the writes of objects in no namespace. These objects are not compared. The objects that
	// a run has made are removed after the run. One run is made at a time if the references make such writes.
	ClusterScoped []string `json:"clusterScoped,omitempty"`

	// What the user has stated.

	// Conditions counts the conditions that must hold sometimes, and how many of these conditions have held.
	Conditions Count `json:"conditions"`
	// Acceptances are the intended differences that runs have shown, with how often.
	Acceptances []string `json:"acceptances,omitempty"`
	// UnusedAcceptances are the intended differences that no run has shown.
	UnusedAcceptances []string `json:"unusedAcceptances,omitempty"`

	// What the program has done.

	// Statements counts, by package, the statements of a program compiled with go build -cover, and the statements
	// that have run. Processes that crashed are not counted. It is empty for other programs.
	Statements map[string]Count `json:"statements,omitempty"`
	// Recreated are the objects that the program has deleted and made again with other content.
	Recreated []string `json:"recreated,omitempty"`
	// Waiting are the objects that the user has deleted before the objects that refer to them, and the finalizers for
	// which they wait.
	Waiting []string `json:"waiting,omitempty"`

	// What the user should read.

	// Warnings are the reasons why the exploration may prove less than it seems to.
	Warnings []string `json:"warnings,omitempty"`
	// Notes are what rules have seen that may be right or wrong, such as a condition that became True, False and True.
	Notes []string `json:"notes,omitempty"`
}

// Count is a number of things done, out of a number of things planned or found.
type Count struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// Record is the file of an exploration: the findings and the coverage.
type Record struct {
	Coverage Coverage  `json:"coverage"`
	Findings []Finding `json:"findings,omitempty"`
}

// CountFailures returns the number of findings that fail the exploration.
func (r Record) CountFailures() (n int) {
	for _, f := range r.Findings {
		if !f.IsWarning() {
			n++
		}
	}
	return n
}
