package faults

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
)

// Run is a run of an exploration, as far as faults concern it.
type Run struct {
	Cluster
	Actions
	// Namespace is the namespace of the run, and Folder is a folder for its files.
	Namespace, Folder string
	// SampleObjects name the objects that the user applies in the first step.
	SampleObjects []Object
	// SampleContents are these objects, as the user applies them.
	SampleContents []json.RawMessage
	// Components is nil if components of the control plane may not be stopped.
	Components Components
	// ExternalConnections is nil if the operator has no external system.
	ExternalConnections ExternalConnections
	// Injector injects the faults of the run.
	Injector *Injector
}

// firstSample returns the first of contents, or nil.
func firstSample(contents []json.RawMessage) json.RawMessage {
	if len(contents) == 0 {
		return nil
	}
	return contents[0]
}

// Actions are what a fault reads of its run, does to it, and records about it. The methods are called from one
// goroutine for each fault.
type Actions interface {
	// Object returns the object of a normalized name, with the API of its kind. It reports whether the object exists.
	Object(ctx context.Context, o Object) (*unstructured.Unstructured, kube.API[unstructured.Unstructured], bool, error)
	// Objects returns all objects of the run's namespace.
	Objects(ctx context.Context) ([]FoundObject, error)
	// Created returns the paths of the objects in no namespace that the program has created.
	Created() []string
	// IsLastStep reports whether a step is the last one of the user.
	IsLastStep(step int) bool

	// TakeStep makes the changes of the user in a step.
	TakeStep(ctx context.Context, step int) error
	// CrashProgram ends all replicas of the program. They start again at once, or by RestartProgram.
	CrashProgram(why string, restartsNow bool) error
	// RestartProgram starts a program that waits for its restart.
	RestartProgram() error
	// AdvanceClock moves the time of the program forward. It reports false if the program has the time of the machine.
	AdvanceClock(ctx context.Context) (bool, error)
	// HandOver waits until another replica leads in place of the replica of an armed fault, and ends the fault. If
	// isKilled is true, it kills the replica before, and starts the replica again after. It returns early if the step
	// ends.
	HandOver(a *Armed, isKilled bool) error
	// AtStepEnd lets a function be called when the step has ended, also after an error. The last function is called first.
	AtStepEnd(undo func() error)

	// WaitForRest waits until the run has come to rest.
	WaitForRest(ctx context.Context) error
	// PreventRest calls work. The run is not at rest before work returns.
	PreventRest(work func() error) error
	// CallInOutage calls work while the server may be down, and returns when the server serves.
	CallInOutage(ctx context.Context, work func() error) error
	// ExpectNoChange calls work, waits for the rest, and records the changes since then as a problem.
	ExpectNoChange(ctx context.Context, work func() error) error

	// RecordReread records as a problem that an object was read twice, and that the answers differ at a path. The path of
	// the whole object is empty. The object has its real name.
	RecordReread(o Object, path, reason string)
	// RecordFault records in the trace of the run that a fault happens.
	RecordFault(where Place, text string)
	// RecordMissed records that a fault did not happen.
	RecordMissed(f Fault)
	// RecordNotApplicable records that a fault cannot happen to this program, with the reason.
	RecordNotApplicable(f Fault, reason string)
}

// FoundObject is an object with its normalized name.
type FoundObject struct {
	Object
	Content *unstructured.Unstructured
}

// Place is where a fault happens.
type Place int

// The places.
const (
	InProgram Place = iota
	InServer
	// ByUser is a change that another user makes.
	ByUser
)

// Components stops and starts the components of the control plane of an exploration. No other part of an
// exploration, and no other program, uses the control plane during a run that stops a component.
type Components interface {
	// Kill ends a component as a crash does. The component stays down until StartComponent, which returns
	// when the component is ready.
	Kill(ctx context.Context, component string) error
	StartComponent(ctx context.Context, component string) error
	// Pause freezes a component until Resume.
	Pause(ctx context.Context, component string) error
	Resume(ctx context.Context, component string) error
	// Dir returns the folder of the control plane. The data of etcd is in its subfolder etcd.
	Dir() string
}

// MaxReturn is how long the control plane may take to be back.
const MaxReturn = 2 * time.Minute
