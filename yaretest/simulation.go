package yaretest

import (
	"strconv"
	"time"
)

// Simulation is how the simulated containers of a Pod behave. The zero value is the default: the Pod is Running and
// Ready at once, and a Pod whose restart policy is Never or OnFailure completes after a second.
//
//	job.Spec.Template.Annotations = yaretest.Simulation{Fails: true}.Annotations()
//	job.Spec.Template.Annotations = yaretest.Simulation{CompleteAfter: time.Hour}.Annotations() // it hangs
//
// Set at most one of StaysPending, CrashLoops and Fails. The first one of them that is set counts.
type Simulation struct {
	// StaysPending means that the containers never start, as if their image were missing.
	StaysPending bool
	// CrashLoops means that the containers exit 300 ms after each start.
	CrashLoops bool
	// Fails means that the containers exit with status 1 after a second. A Job retries the Pod up to its
	// backoffLimit, and then fails.
	Fails bool
	// ReadyAfter is the time from the start of the containers until they are ready.
	ReadyAfter time.Duration
	// CompleteAfter is the time from the start of the containers until they exit. A Job whose Pods have an hour hangs,
	// as far as a test can see.
	CompleteAfter time.Duration
	// TerminateAfter is the time from the deletion of the Pod until its containers have stopped. It is not longer than
	// the grace period of the Pod. Zero: half a second.
	TerminateAfter time.Duration
	// ExitCode is the status with which the containers exit, from 0 to 255.
	ExitCode int
}

// The annotations of a Pod that control its simulation.
const (
	outcomeAnnotation        = "simulate.yare.dev/outcome"
	readyAfterAnnotation     = "simulate.yare.dev/ready-after"
	completeAfterAnnotation  = "simulate.yare.dev/complete-after"
	terminateAfterAnnotation = "simulate.yare.dev/terminate-after"
	exitCodeAnnotation       = "simulate.yare.dev/exit-code"
)

// Annotations returns the annotations of a Pod with this simulation. A test sets them in the template of a Deployment,
// a Job or the like, or on a Pod that runs: a change counts at once. The control plane ignores a value that is not
// valid, and a Warning Event on the Pod reports the value.
func (s Simulation) Annotations() map[string]string {
	annotations := make(map[string]string)
	switch {
	case s.StaysPending:
		annotations[outcomeAnnotation] = "pending"
	case s.CrashLoops:
		annotations[outcomeAnnotation] = "crash-loop"
	case s.Fails:
		annotations[outcomeAnnotation] = "fail"
	}
	for name, d := range map[string]time.Duration{
		readyAfterAnnotation: s.ReadyAfter, completeAfterAnnotation: s.CompleteAfter,
		terminateAfterAnnotation: s.TerminateAfter,
	} {
		if d != 0 {
			annotations[name] = d.String()
		}
	}
	if s.ExitCode != 0 {
		annotations[exitCodeAnnotation] = strconv.Itoa(s.ExitCode)
	}
	return annotations
}
