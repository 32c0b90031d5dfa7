package faults

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/yare-go/yare/internal/proxy"
)

// Injector injects the faults that are armed into the requests and watches of a proxy. It is a [proxy.Hook] and a
// [proxy.Gate]. Its methods are safe for concurrent use.
type Injector struct {
	admin       *proxy.Upstream
	expirations *expirations

	mu   sync.Mutex
	step int
	// version is the version of the server when the step began.
	version string
	armed   []armedEffect
}

// armedEffect is an armed fault with its effect.
type armedEffect struct {
	*Armed
	effect effect
}

// NewInjector returns an injector without faults, before the first step. It sends requests of its own as admin.
func NewInjector(admin *proxy.Upstream) *Injector {
	return &Injector{admin: admin, expirations: newExpirations(), step: -1}
}

// Arm arms a fault. A fault at a point happens once. A fault of a stream happens in its step. The comments of the
// kinds state what happens. The first events of a streaming list are neither held nor counted.
//
// Error: the proxy does not inject faults of this kind, or the fault lacks its trigger.
func (i *Injector) Arm(f Fault) (*Armed, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	a := newArmed(f)
	effect, err := FamilyOf(f.Kind).arm(a, stepContext{admin: i.admin, version: i.version, expirations: i.expirations})
	if err != nil {
		return nil, err
	}
	i.armed = append(i.armed, armedEffect{a, effect})
	return a, nil
}

// Disarm ends all faults. Events that were held are delivered.
func (i *Injector) Disarm() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, a := range i.armed {
		a.End()
	}
	i.armed = nil
}

// BeginStep begins a step of the user, and ends the faults of earlier steps. It asks the server for its present
// version. [Stale] shows the state of this version.
func (i *Injector) BeginStep(ctx context.Context, step int) error {
	version, err := presentVersion(ctx, i.admin)
	if err != nil {
		return fmt.Errorf("begin step %d: %w", step+1, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.step, i.version = step, version
	for _, a := range i.armed {
		if a.fault.StepIndex() < step {
			a.End()
		}
	}
	return nil
}

// effects returns the effects of the faults that can happen now, in the order of Arm.
func (i *Injector) effects() []effect {
	i.mu.Lock()
	defer i.mu.Unlock()
	var effects []effect
	for _, a := range i.armed {
		if a.isActive(i.step) {
			effects = append(effects, a.effect)
		}
	}
	return append(effects, i.expirations)
}

// RoundTrip implements [proxy.Hook].
func (i *Injector) RoundTrip(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	return proxy.PassThrough(i.effects(), x, r, next)
}

// Decide implements [proxy.Gate].
func (i *Injector) Decide(x *proxy.Exchange, e proxy.Event) proxy.Decision {
	for _, each := range i.effects() {
		if d := each.Decide(x, e); !d.IsDelivery() {
			return d
		}
	}
	return proxy.Decision{}
}
