package convert

import "time"

// Result is how the conversion of an object ended.
type Result string

// The results of a conversion.
const (
	// ResultConverted means that the result has all values, or keeps them.
	ResultConverted Result = "converted"
	// ResultIncomplete means that the result is marked as incomplete.
	ResultIncomplete Result = "incomplete"
)

// CallResult is how a call of the API server ended.
type CallResult string

// The results of a call.
const (
	CallAnswered CallResult = "answered"
	// CallFailed means that the call was no ConversionReview, or that its time was over.
	CallFailed CallResult = "failed"
	// CallUnavailable means that the API server has to call again: the program does not know the version.
	CallUnavailable CallResult = "unavailable"
	// CallOverload means that the API server has to call again, because there were too many calls at once.
	CallOverload CallResult = "overload"
)

// CallResults returns all results of calls.
func CallResults() []CallResult {
	return []CallResult{CallAnswered, CallFailed, CallUnavailable, CallOverload}
}

// Observer counts calls and conversions. Its methods may be called concurrently, and must return at once.
type Observer interface {
	// ObserveConversions is called for each answered call, once for each version and result. kind is the plural and
	// the group, such as cronjobs.example.com.
	ObserveConversions(kind, from, to string, result Result, objects int)
	// ObserveCall is called at the answer to each call of a known kind.
	ObserveCall(kind string, result CallResult, objects int, d time.Duration)
}

// noObserver is the Observer of a Handler without one.
type noObserver struct{}

func (noObserver) ObserveConversions(string, string, string, Result, int) {}
func (noObserver) ObserveCall(string, CallResult, int, time.Duration)     {}
