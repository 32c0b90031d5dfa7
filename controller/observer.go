package controller

import (
	"errors"
	"time"
)

// Observer is told what the controllers of a program do, for metrics and health. Its
// methods are called by several goroutines, and must not block.
type Observer interface {
	// Queue is called by a controller once it has subscribed to all of its streams, which
	// need not be synced then. Its figures can be asked for from then on, at any time and
	// by any goroutine; after the controller has ended they stand still.
	Queue(controller string, figures func() QueueFigures)
	// Result is called with the result of every call of a reconcile or cleanup function, by
	// the worker that made it.
	Result(Result)
}

// QueueFigures are a snapshot of the queue of one controller. One that only waits for the
// next change of an object has nothing in it.
type QueueFigures struct {
	// Ready is how many objects wait for a worker.
	Ready int
	// Waiting is how many objects wait for their time: a requeue, or the end of a back-off.
	Waiting int
	// Running is how many objects are being reconciled.
	Running int
	// Oldest is how long the one that has waited longest for a worker has been waiting.
	Oldest time.Duration
	// Retries counts the calls that failed and are made again, since the start.
	Retries uint64
	// Triggers counts what asked for a reconcile, since the start; several triggers can
	// lead to one call.
	Triggers uint64
}

// observe gives the figures of the queue to the observer of the program, if there is one.
func (e *engine[T]) observe() {
	if e.runtime.Observer == nil {
		return
	}
	e.runtime.Observer.Queue(e.name, func() QueueFigures {
		s := e.queue.Stats()
		return QueueFigures{
			Ready: s.Ready, Waiting: s.Waiting, Running: s.Running, Oldest: s.OldestReady,
			Retries: s.Retries, Triggers: s.Adds,
		}
	})
}

// Outcome is how a call ended, in one word.
type Outcome string

// The outcomes of a call.
const (
	// Success is a call without an error.
	OutcomeSuccess Outcome = "success"
	// Failure is an error that is retried with growing intervals.
	OutcomeError Outcome = "error"
	// Conflict is a write that was refused because the object had changed since it was
	// read. It is retried at once, and no reason to worry unless it is frequent.
	OutcomeConflict Outcome = "conflict"
	// Hopeless is an error that only a change of the object can cure: see [Terminal].
	OutcomeTerminal Outcome = "terminal"
	// Panic is a call that panicked. It is retried as an error is.
	OutcomePanic Outcome = "panic"
)

// Outcomes are all there are.
func Outcomes() []Outcome {
	return []Outcome{OutcomeSuccess, OutcomeError, OutcomeConflict, OutcomeTerminal, OutcomePanic}
}

// Outcome is how the call ended.
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
