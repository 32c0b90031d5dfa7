package faults

import (
	"sync"
	"sync/atomic"

	"github.com/yare-go/yare/internal/proxy"
)

// Armed is a fault that happens when its trigger comes. Its methods are safe for concurrent use.
type Armed struct {
	fault Fault
	// triggered is closed when the fault has happened, and ended when the fault has ended.
	triggered, ended chan struct{}
	// triggerOnce closes triggered, and endOnce closes ended.
	triggerOnce, endOnce sync.Once
	// isUsed is true after the first use of a fault that happens once.
	isUsed atomic.Bool
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
func (a *Armed) End() { a.endOnce.Do(func() { close(a.ended) }) }

// recordTriggered records that the fault has happened.
func (a *Armed) recordTriggered() { a.triggerOnce.Do(func() { close(a.triggered) }) }

// isActive reports whether the fault can happen in a step.
func (a *Armed) isActive(step int) bool { return !isClosed(a.ended) && a.fault.StepIndex() == step }

// useOnce uses the fault, and reports whether this is the first use. A fault that happens once happens at its first
// use.
func (a *Armed) useOnce() (isFirst bool) { return !a.isUsed.Swap(true) }

// takeExchange takes an exchange for the fault if the request is the point of the fault and the fault was not used. It
// reports whether it has taken the exchange. If so, the fault is used, and the record of the request names the fault.
func (a *Armed) takeExchange(x *proxy.Exchange) (isTaken bool) {
	if !x.IsAboutObjects() || x.Recorded().Point != *a.fault.At || !a.useOnce() {
		return false
	}
	x.Record(func(r *proxy.RequestRecord) { r.Fault = string(a.fault.Kind) })
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
