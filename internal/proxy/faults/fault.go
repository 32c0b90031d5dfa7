package faults

import (
	"encoding/json"

	"github.com/yare-go/yare/internal/proxy"
)

// Kind is what a run tries. Most kinds are kinds of faults, such as [Crash]. The others try something ordinary that a
// program must stand, too:
//
//   - [Idle], [Reread], the kinds of tools, such as [GitOps], and those of other steps of the user, such as [Waiting], have a
//     [Fault] in the run, which disturbs nothing.
//   - [Transition], [ObjectChange] and [SimilarNames] have none: only the steps of the user differ from those of other runs.
//
// The file of its [Family] declares a kind. Kubernetes allows everything that a kind tries, unless the comment of the
// kind states otherwise.
type Kind string

// Fault is one thing that an exploration does in a run beside the steps of the user. It stands in files of findings.
// The kind states what the exploration does: see [Kind]. A fault of most kinds disturbs the program. A fault of the
// other kinds is something ordinary, such as the time that passes, and disturbs nothing.
type Fault struct {
	Kind Kind `json:"kind"`
	// At is the request at which the fault happens. It is nil for the other faults, such as those of watches and those
	// that happen when a step has come to rest.
	At *proxy.Point `json:"at,omitempty"`
	// Restart is when a program that has crashed starts again. Default: at once.
	Restart Restart `json:"restart,omitempty"`
	// Step is the index of the step of a fault that has no point, counted from 0.
	Step int `json:"step,omitempty"`
	// Stream is the resource of a watch fault, such as deployments.apps.
	Stream string `json:"stream,omitempty"`
	// Events is how many changes of the step a watch delivers before its fault.
	Events int `json:"events,omitempty"`
	// Part is the number of the part of data, counted in the step from 1, at which a fault of the connections to an
	// external system happens.
	Part int `json:"part,omitempty"`
	// Object is the object to which something happens, if not to the object of a request: for example what a [ForeignEdit]
	// changes, or the Pod of a [PodEvicted].
	Object *Object `json:"object,omitempty"`
	// Stage is what a stranger does in this fault. Only faults of the family stranger have a stage. Files call it act.
	Stage Stage `json:"act,omitempty"`
	// Resources are the resources of which a quota-full allows no more objects.
	Resources []string `json:"resources,omitempty"`
	// Edit is the merge patch of a [ForeignEdit].
	Edit json.RawMessage `json:"edit,omitempty"`
}

// UnmarshalJSON reads a fault from the file of a finding, also of one that an earlier version has written.
func (f *Fault) UnmarshalJSON(data []byte) error {
	type plainFault Fault // without this method
	var read plainFault
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*f = FamilyOf(read.Kind).fromEarlierFile(Fault(read))
	return nil
}

// String returns the fault in a line.
func (f Fault) String() string { return FamilyOf(f.Kind).Text(f) }

// StepIndex returns the step in which the fault happens.
func (f Fault) StepIndex() int {
	if f.At != nil {
		return f.At.Step
	}
	return f.Step
}

// NeedsArming reports whether the fault must be armed before its step: the proxy of the program injects the fault, or
// notices when it is due. Its family carries out any other fault itself: before the step, after it, or in the step at a
// place that is not the proxy of the program, such as the connection to the external system.
func (f Fault) NeedsArming() bool { return f.At != nil || f.Stream != "" || f.IsDenial() }

// IsDenial reports whether the fault denies a write again and again.
func (f Fault) IsDenial() bool { return FamilyOf(f.Kind).Describe().DeniesWrites }

// MatchesWrite reports whether a request has the verb and the object of the fault's point. A denial without a point
// matches each change of its object.
func (f Fault) MatchesWrite(p proxy.Point) bool {
	if f.At != nil {
		return isSameWrite(*f.At, p)
	}
	isChange := (p.Verb == "update" || p.Verb == "patch") && p.Subresource == ""
	return f.Object != nil && isChange && p.Resource == f.Object.Resource && p.Name == f.Object.Name
}

// Target returns the object that a denial concerns. Other faults may have none.
func (f Fault) Target() Object {
	if f.At != nil {
		return Object{Resource: f.At.Resource, Name: f.At.Name}
	}
	return *f.Object
}

// Object names an object of the run's namespace.
type Object struct {
	// Resource is the plural name and the group, such as deployments.apps.
	Resource string `json:"resource"`
	// Name is a normalized name: see [proxy.Point].
	Name string `json:"name"`
}

// String returns the object as resource/name.
func (o Object) String() string { return o.Resource + "/" + o.Name }

// Restart is when a program that has crashed is started again.
type Restart string

// The times of a restart.
const (
	RestartNow      Restart = ""
	RestartAtRest   Restart = "rest"      // when the control plane has come to rest
	RestartNextStep Restart = "next-step" // when the user has done the next step
)
