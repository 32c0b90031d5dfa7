package faults

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
)

// Run is a run of an exploration, as far as faults act on it.
type Run interface {
	Cluster
	// Namespace returns the namespace of the run.
	Namespace() string
	// Folder returns a folder for files of the run.
	Folder() string
	// Sample returns the first object that the user applies, in the namespace of the run.
	Sample() (*unstructured.Unstructured, error)
	// Object returns the object of a normalized name, with the API of its kind. It reports whether the object exists.
	Object(ctx context.Context, o Object) (*unstructured.Unstructured, kube.API[unstructured.Unstructured], bool, error)
	// TakeStep makes the changes of the user in a step.
	TakeStep(ctx context.Context, step int) error

	// Arm and Disarm are those of the [Injector] of the run.
	Arm(f Fault) (*Armed, error)
	Disarm()

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
	// WaitForRest waits until the run has come to rest.
	WaitForRest(ctx context.Context) error
	// ExpectNoChange calls act, waits for the rest, and records the changes since then as a problem.
	ExpectNoChange(ctx context.Context, act func() error) error

	// Plane returns the control plane, or nil if its components may not be stopped.
	Plane() Plane
	// Outage calls work while the server may be down, and returns when the server serves.
	Outage(ctx context.Context, work func() error) error

	// RecordFault records in the trace of the run that a fault happens.
	RecordFault(where Place, text string)
	// RecordMissed records that a fault did not happen, and RecordNotApplicable that the program gave no opportunity.
	RecordMissed(f Fault)
	RecordNotApplicable(f Fault)
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

// Plane stops and starts the components of the control plane of an exploration. No other part of an
// exploration, and no other program, uses the control plane during a run that stops a component.
type Plane interface {
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
