package controller

import (
	"errors"
	"time"
)

// Observer receives what the controllers of a program do, for metrics and health. Several
// goroutines call its methods, which must not block.
type Observer interface {
	// Queue is called by a controller once it has subscribed to all of its streams, which
	// need not be synced then. figures may be called from then on, at any time and by any
	// goroutine. After the controller has ended, figures returns the last ones.
	Queue(controller string, figures func() QueueFigures)
	// Result is called with the result of every reconcile and cleanup, by its worker.
	Result(Result)
}

// QueueFigures is a snapshot of the queue of one controller. An object that only waits for its
// next change is not in the queue.
type QueueFigures struct {
	// Ready is the number of objects that wait for a worker.
	Ready int
	// Waiting is the number of objects that wait for a requeue, a delayed trigger or the end of a
	// back-off.
	Waiting int
	// Running is the number of objects that are being reconciled.
	Running int
	// Oldest is the longest time that an object in Ready has been waiting. It is zero in a replica
	// that does not lead, in which no object waits for a worker.
	Oldest time.Duration
	// Retries counts the reconciles that failed and are retried, since the start.
	Retries uint64
	// Triggers counts the triggers since the start. Several triggers can lead to one reconcile.
	Triggers uint64
}

// observe passes the figures of the queue to the observer of the program, if there is one.
func (e *engine) observe() {
	if e.runtime.Observer == nil {
		return
	}
	e.runtime.Observer.Queue(e.name, func() QueueFigures {
		s := e.queue.Stats()
		if !e.runtime.isElected() {
			s.OldestReady = 0
		}
		return QueueFigures{
			Ready: s.Ready, Waiting: s.Waiting, Running: s.Running, Oldest: s.OldestReady,
			Retries: s.Retries, Triggers: s.Adds,
		}
	})
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

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{OutcomeSuccess, OutcomeError, OutcomeConflict, OutcomeTerminal, OutcomePanic}
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

func isPanic(err error) bool {
	_, ok := errors.AsType[*panicError](err)
	return ok
}
