package faults

import (
	"context"
	"fmt"

	"github.com/yare-go/yare/internal/explore/schedule"
)

// Armed is a fault that happens when its trigger comes.
type Armed struct {
	proxy     *Proxy
	fault     schedule.Fault
	triggered chan struct{}

	// The following fields are guarded by proxy.mu. isTriggered is true once triggered is closed.
	isTriggered bool
	// isSpent is true for a fault that happens once, and whose trigger has come.
	isSpent    bool
	isDisarmed bool
	err        error
	// session is the session of the request that the fault concerns. It is nil before the request.
	session *Session
}

// Triggered returns a channel that is closed when the fault has happened. The fault of a watch
// that is held has happened when the first event is held.
func (a *Armed) Triggered() <-chan struct{} { return a.triggered }

// Err returns why a fault did not happen although its trigger came, or nil.
func (a *Armed) Err() error {
	a.proxy.mu.Lock()
	defer a.proxy.mu.Unlock()
	return a.err
}

func (a *Armed) triggerLocked() {
	if !a.isTriggered {
		a.isTriggered = true
		close(a.triggered)
	}
}

// Arm arms a fault. A fault at a point happens once. A fault of a stream happens in its step:
//
//   - [schedule.WatchLag] lets each watch of the resource deliver the first Fault.Events changes of the
//     step, and holds the later events until the step ends.
//   - [schedule.WatchCut] breaks one watch of the resource at the first later change.
//   - [schedule.WatchExpired] breaks one watch in the same way, and answers the next watch from a version
//     with 410.
//   - [schedule.WatchMissed] holds events as a lag does. At the end of the step the events are dropped,
//     the watch breaks, and the next watch from a version is answered with 410.
//   - [schedule.WatchTwice] delivers that event and all that follow twice, until the step ends.
//   - The faults of a leader isolate its session until [Session.Reconnect], or cut it off.
//   - The faults of the control plane only trigger. The caller carries them out.
//   - [schedule.Stale] lets each read with resourceVersion=0 see the state at the beginning of the
//     step. Watches from that version are held. A streaming list from version 0 is refused with
//     422, as by a server without streaming lists. A client that never asks for the past does not
//     trigger the fault.
//
// The first events of a streaming list are neither held nor counted.
//
// Arm returns an error if the fault is of another kind, or lacks its trigger.
func (p *Proxy) Arm(f schedule.Fault) (*Armed, error) {
	switch f.Kind {
	case schedule.Crash, schedule.Reset, schedule.Conflict, schedule.CommittedReset, schedule.Committed500, schedule.Committed504,
		schedule.Refused429, schedule.Refused500, schedule.Refused503, schedule.Refused504,
		schedule.LeaderLost, schedule.LeaderHung, schedule.LeaderCut, schedule.LeaderKilled,
		schedule.ServerKilled, schedule.EtcdKilled, schedule.EtcdPaused:
		if f.At == nil {
			return nil, fmt.Errorf("the fault %s has no point", f.Kind)
		}
	case schedule.WatchLag, schedule.WatchCut, schedule.WatchExpired, schedule.WatchMissed, schedule.WatchTwice:
		if f.Stream == "" {
			return nil, fmt.Errorf("the fault %s has no stream", f.Kind)
		}
	case schedule.Stale:
	default:
		return nil, fmt.Errorf("the proxy does not inject faults of the kind %q", f.Kind)
	}
	a := &Armed{fault: f, triggered: make(chan struct{}), proxy: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = append(p.armed, a)
	return a, nil
}

// Disarm ends all faults. Events that were held are delivered.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.armed {
		a.isDisarmed = true
	}
	p.armed = nil
	p.wakeStreamsLocked()
}

// BeginStep begins a step of the user: points are counted from 1 again, and the faults of other
// steps end. The step is -1 until the first call.
//
// BeginStep asks the server for its present version, which is the past that [schedule.Stale]
// shows.
func (p *Proxy) BeginStep(ctx context.Context, step int) error {
	version, err := p.admin.presentVersion(ctx)
	if err != nil {
		return fmt.Errorf("begin step %d: %w", step+1, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.stepVersion = step, version
	clear(p.occurrences)
	clear(p.delivered)
	p.wakeStreamsLocked()
	return nil
}

// isActiveLocked reports whether a fault of a step goes on.
func (p *Proxy) isActiveLocked(a *Armed) bool { return !a.isDisarmed && a.fault.Step == p.step }

// faultAtLocked returns the fault of a request, or nil. A fault is returned once.
func (p *Proxy) faultAtLocked(point schedule.Point) *Armed {
	for _, a := range p.armed {
		if a.fault.At != nil && *a.fault.At == point && !a.isSpent {
			a.isSpent = true
			return a
		}
	}
	return nil
}

// staleLocked returns the fault that shows the past, or nil.
func (p *Proxy) staleLocked() *Armed {
	for _, a := range p.armed {
		if a.fault.Kind == schedule.Stale && p.isActiveLocked(a) {
			return a
		}
	}
	return nil
}

// trigger reports that a fault has happened.
func (p *Proxy) trigger(a *Armed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.triggerLocked()
}

// fail records why a fault has not happened.
func (p *Proxy) fail(a *Armed, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.err = err
}
