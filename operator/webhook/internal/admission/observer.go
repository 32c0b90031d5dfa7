package admission

import "time"

// Result is how a call ended.
type Result string

// The results of a call.
const (
	ResultAllowed Result = "allowed"
	// ResultRefused means that the function refused the request.
	ResultRefused Result = "refused"
	// ResultFailed means that the function failed: it panicked, was too slow, or broke a rule of webhooks.
	ResultFailed Result = "failed"
	// ResultUnavailable means that the API server has to call again, because of an error that may pass by itself.
	ResultUnavailable Result = "unavailable"
	// ResultOverload means that the API server has to call again, because there were too many calls at once.
	ResultOverload Result = "overload"
)

// Results returns all results of calls.
func Results() []Result {
	return []Result{ResultAllowed, ResultRefused, ResultFailed, ResultUnavailable, ResultOverload}
}

// Observer counts calls. Its methods may be called concurrently, and must return at once.
type Observer interface {
	// ObserveCall is called at the answer to each call of a known webhook. The operation is empty if the call was
	// not read.
	ObserveCall(webhook, operation string, result Result, d time.Duration)
	// ObserveDropped is called with the number of fields that a defaulter wanted to change or remove in one call.
	ObserveDropped(webhook string, fields int)
}

// noObserver is the Observer of a Handler without one.
type noObserver struct{}

func (noObserver) ObserveCall(string, string, Result, time.Duration) {}
func (noObserver) ObserveDropped(string, int)                        {}
