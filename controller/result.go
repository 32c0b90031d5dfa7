package controller

import (
	"time"

	"github.com/yare-go/yare/kube"
)

// Result is what one call of a reconcile or cleanup function came to.
type Result struct {
	// Controller is the name of the controller.
	Controller string
	// Object is what was reconciled.
	Object kube.Ref
	// Cleanup is true if the object was being deleted.
	Cleanup bool
	// Causes say what led to the call: the first few changes, and how many there were.
	Causes string
	// Waited is how long it was due before a worker was free.
	Waited time.Duration
	// Duration is how long it took.
	Duration time.Duration
	// Reads is how many objects and lists were read, from the cache or not.
	Reads int
	// Writes are the requests that were made to change something, and those that were
	// skipped because they would have changed nothing.
	Writes []Write
	// Err is what went wrong.
	Err error
	// Attempt is how many times in a row it has gone wrong.
	Attempt int
	// Next is when it is called again even if nothing changes; 0 is never.
	Next time.Duration
}

// Write is one request of a reconcile that changes something.
type Write struct {
	Verb        kube.Verb
	Object      kube.Ref
	Subresource string
	// Skipped is true if it was not sent, because it would have changed nothing.
	Skipped bool
	// Failed is true if it led to an error.
	Failed bool
}

// String is the write in short, such as: patch deployments.apps "default/web" (skipped).
func (w Write) String() string {
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
