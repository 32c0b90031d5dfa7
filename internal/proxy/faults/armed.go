package faults

import (
	"sync"
	"sync/atomic"

	"github.com/yare-go/yare/internal/proxy"
)

// Armed is a fault that happens when its trigger comes. Its methods are safe for concurrent use.
type Armed struct {
	fault            Fault
	triggered, ended chan struct{}
	// triggering and ending close the channels.
	triggering, ending sync.Once
	// isSpent is true for a fault that happens once, after its trigger has come.
	isSpent atomic.Bool
	// session is the session of the request that the fault concerns. It is nil before the request.
	session atomic.Pointer[proxy.Session]
}

func newArmed(f Fault) *Armed {
	return &Armed{fault: f, triggered: make(chan struct{}), ended: make(chan struct{})}
}

// Fault returns the fault.
func (a *Armed) Fault() Fault { return a.fault }

// Triggered returns a channel that is closed when the fault has happened. The fault of a watch
// that is held has happened when the first event is held.
func (a *Armed) Triggered() <-chan struct{} { return a.triggered }

// IsTriggered reports whether the fault has happened.
func (a *Armed) IsTriggered() bool { return isClosed(a.triggered) }

// Session returns the session of the request that the fault concerned, or nil before the request.
func (a *Armed) Session() *proxy.Session { return a.session.Load() }

// End ends the fault. What the fault has held, and the program has not given up, passes then.
func (a *Armed) End() { a.ending.Do(func() { close(a.ended) }) }

// trigger reports that the fault has happened.
func (a *Armed) trigger() { a.triggering.Do(func() { close(a.triggered) }) }

// isActive reports whether the fault can happen in a step.
func (a *Armed) isActive(step int) bool { return !isClosed(a.ended) && a.fault.StepIndex() == step }

// spend reports true once: the fault happens now.
func (a *Armed) spend() bool { return !a.isSpent.Swap(true) }

// triggerAt reports whether the fault happens at the request of an exchange, and records that the fault concerns the
// exchange.
func (a *Armed) triggerAt(x *proxy.Exchange) bool {
	if !x.IsAboutObjects() || x.Recorded().Point != *a.fault.At || !a.spend() {
		return false
	}
	x.Record(func(r *proxy.Request) { r.Fault = string(a.fault.Kind) })
	a.session.Store(x.Session)
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
