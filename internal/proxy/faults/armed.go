package faults

import (
	"sync"

	"github.com/yare-go/yare/internal/proxy"
)

// Armed is a fault that happens when its trigger comes. Its methods are safe for concurrent use.
type Armed struct {
	fault            Fault
	triggered, ended chan struct{}

	mu sync.Mutex
	// isTriggered and isEnded are true once the channels are closed.
	isTriggered, isEnded bool
	// isSpent is true for a fault that happens once, and whose trigger has come.
	isSpent bool
	err     error
	// session is the session of the request that the fault concerns. It is nil before the request.
	session *proxy.Session
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
func (a *Armed) IsTriggered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.isTriggered
}

// Err returns why a fault did not happen although its trigger came, or nil.
func (a *Armed) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Session returns the session of the request that the fault concerned, or nil before the request.
func (a *Armed) Session() *proxy.Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.session
}

// End ends the fault. What the fault has held, and the program has not given up, passes then.
func (a *Armed) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isEnded {
		a.isEnded = true
		close(a.ended)
	}
}

// isActive reports whether the fault can happen in a step.
func (a *Armed) isActive(step int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.isEnded && a.fault.StepIndex() == step
}

// trigger reports that the fault has happened.
func (a *Armed) trigger() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isTriggered {
		a.isTriggered = true
		close(a.triggered)
	}
}

// fail records why the fault has not happened.
func (a *Armed) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// spend reports true once: the fault happens now.
func (a *Armed) spend() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	isFirst := !a.isSpent
	a.isSpent = true
	return isFirst
}

// happensAt reports whether the fault happens at the request of an exchange, and records that the fault concerns the
// exchange.
func (a *Armed) happensAt(x *proxy.Exchange) bool {
	if !x.IsAboutObjects() || x.Recorded().Point != *a.fault.At || !a.spend() {
		return false
	}
	x.Record(func(r *proxy.Request) { r.Fault = string(a.fault.Kind) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.session = x.Session
	return true
}
