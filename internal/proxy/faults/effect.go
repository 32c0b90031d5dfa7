package faults

import (
	"fmt"
	"net/http"

	"github.com/yare-go/yare/internal/proxy"
)

// effect is what an armed fault does to requests and watches.
type effect interface {
	proxy.Hook
	proxy.Gate
}

// stepContext holds what the effects of a step share.
type stepContext struct {
	// admin sends requests of the proxy itself.
	admin *proxy.Upstream
	// version is the version of the server when the step began.
	version     string
	expirations *expirations
}

// baseEffect passes on all requests, and delivers all events. Effects embed baseEffect for what they do not do.
type baseEffect struct{}

// RoundTrip implements [proxy.Hook].
func (baseEffect) RoundTrip(_ *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	return next(r)
}

// Decide implements [proxy.Gate].
func (baseEffect) Decide(*proxy.Exchange, proxy.Event) proxy.Decision { return proxy.Decision{} }

// atPoint is the effect of a fault that happens once, at its request.
type atPoint struct {
	baseEffect
	armed *Armed
	hook  proxy.HookFunc
}

// RoundTrip implements [proxy.Hook].
func (e atPoint) RoundTrip(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	if !e.armed.takeExchange(x) {
		return next(r)
	}
	return e.hook(x, r, next)
}

// newAtPoint returns the effect of a fault that happens at its point. Error: the fault has no point.
func newAtPoint(a *Armed, hook proxy.HookFunc) (effect, error) {
	if f := a.Fault(); f.At == nil {
		return nil, fmt.Errorf("the fault %s has no point", f.Kind)
	}
	return atPoint{armed: a, hook: hook}, nil
}
