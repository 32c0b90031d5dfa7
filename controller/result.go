package controller

import (
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// Result is the result of one reconcile or cleanup.
type Result struct {
	// Controller is the name of the controller.
	Controller string
	// Object is the object that was reconciled. Its UID is empty if the object was not read.
	Object wire.Ref
	// Cleanup is true if the object was being deleted, or no longer matched the selectors of [Reconciled].
	Cleanup bool
	// isPending is true if the cleanup has ended without an error, and has more to do.
	isPending bool
	// Causes lists the first few causes of the reconcile, and how many there were.
	Causes string
	// Waited is how long the reconcile was due before a worker was free.
	Waited time.Duration
	// Duration is how long the reconcile took.
	Duration time.Duration
	// Reads is the number of objects and lists that were read, from the cache or live.
	Reads int
	// Writes holds the writes of the reconcile. Skipped applies are included.
	Writes []WriteReport
	// Err is the error of the reconcile, or nil.
	Err error
	// Attempt is the number of failures in a row, including this one. It is 0 without an error.
	Attempt int
	// Next is the time until the next reconcile if nothing changes. 0 means that there is none.
	Next time.Duration
}

// WriteReport is one request of a reconcile that changes something.
type WriteReport struct {
	Verb        wire.Verb
	Object      wire.Ref
	Subresource string
	// Skipped is true if the request was not sent, because it would have changed nothing.
	Skipped bool
	// Failed is true if the request returned an error.
	Failed bool
}

// String returns the write in short, such as: patch deployments.apps "default/web" (skipped).
func (w WriteReport) String() string {
	text := string(w.Verb) + " " + w.Object.String()
	if w.Subresource != "" {
		text += " " + w.Subresource
	}
	switch {
	case w.Skipped:
		text += " (skipped)"
	case w.Failed:
		text += " (failed)"
	}
	return text
}

// Outcome is how a reconcile ended, in one word.
type Outcome string

// The outcomes of a reconcile.
const (
	// OutcomeSuccess means that there was no error.
	OutcomeSuccess Outcome = "success"
	// OutcomeError means an error that is retried after a back-off.
	OutcomeError Outcome = "error"
	// OutcomeConflict means that a write was refused because the object had changed since it was
	// read, or because its namespace is being deleted. The reconcile is retried soon. A conflict is no
	// fault unless it is frequent.
	OutcomeConflict Outcome = "conflict"
	// OutcomeTerminal means an error that only a change of the object can cure: see [Terminal].
	OutcomeTerminal Outcome = "terminal"
	// OutcomePanic means that the function panicked. A panic is retried like an error.
	OutcomePanic Outcome = "panic"
)

// logText returns the text of the log line about the result.
func (r Result) logText() string {
	switch {
	case r.Cleanup && r.Err != nil:
		return "cleanup failed"
	case r.isPending:
		return "cleanup pending"
	case r.Cleanup:
		return "cleaned up"
	case r.Err != nil:
		return "reconcile failed"
	default:
		return "reconciled"
	}
}

// Outcome returns how the reconcile ended.
func (r Result) Outcome() Outcome {
	switch {
	case r.Err == nil:
		return OutcomeSuccess
	case isPanic(r.Err):
		return OutcomePanic
	case IsTerminal(r.Err):
		return OutcomeTerminal
	case isConflict(r.Err):
		return OutcomeConflict
	default:
		return OutcomeError
	}
}
