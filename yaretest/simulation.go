package yaretest

// The annotations of a Pod that control its simulation. A test sets them in the template of a
// Deployment, a Job or the like, or on a Pod that runs: a change counts at once. A value that is not
// valid is ignored, and a Warning Event on the Pod reports the value.
//
// Without them a Pod is Running and Ready at once. A Pod whose restart policy is Never or OnFailure
// completes after a second, and its Job completes with it.
const (
	// SimulateOutcome is what becomes of the Pod: [OutcomeFail], [OutcomeCrashLoop] or
	// [OutcomePending].
	SimulateOutcome = "simulate.yare.dev/outcome"
	// SimulateReadyAfter is the time from the start of the containers until they are ready, as a
	// duration such as 3s or 1m30s.
	SimulateReadyAfter = "simulate.yare.dev/ready-after"
	// SimulateCompleteAfter is the time from the start of the containers until they exit, as a
	// duration. A Job whose Pods have 1h hangs, as far as a test can see.
	SimulateCompleteAfter = "simulate.yare.dev/complete-after"
	// SimulateTerminateAfter is the time from the deletion of the Pod until its containers have
	// stopped, as a duration. It is not longer than the grace period of the Pod. The default is half
	// a second.
	SimulateTerminateAfter = "simulate.yare.dev/terminate-after"
	// SimulateExitCode is the status with which the containers exit, from 0 to 255.
	SimulateExitCode = "simulate.yare.dev/exit-code"
)

// The values of [SimulateOutcome].
const (
	// OutcomeFail means that the containers exit with status 1 after a second. A Job retries the Pod
	// up to its backoffLimit, and then fails.
	OutcomeFail = "fail"
	// OutcomeCrashLoop means that the containers exit at once, after each start.
	OutcomeCrashLoop = "crash-loop"
	// OutcomePending means that the containers never start, as if their image were missing.
	OutcomePending = "pending"
)
