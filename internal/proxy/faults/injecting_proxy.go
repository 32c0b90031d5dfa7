package faults

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube"
)

// Options are the settings of an [InjectingProxy].
type Options struct {
	// Target is the API server, with the rights that the program is to have. If these are the rights of an
	// impersonated user, the program itself must not impersonate anybody.
	Target *kube.Config
	// Admin is the same API server, with the rights for what the proxy itself does: it lists
	// namespaces, and annotates objects for [Conflict]. Default: Target.
	Admin *kube.Config
	// Namespace is the namespace to which a [proxy.Confinement] confines the program. Default: no confinement.
	Namespace string
	// Normalize replaces the random parts of a name by asterisks. Several goroutines call it at
	// the same time. Default: names stay as they are.
	Normalize func(name string) string
	// Delay delays each request. Default: no delay.
	Delay time.Duration
	// Hooks come before all other hooks.
	Hooks []proxy.Hook
}

// InjectingProxy is a [proxy.Proxy] with an [Injector]: it injects faults into the requests of a program, confines the
// program to a namespace, and records what the program writes and receives. All answers about objects are JSON.
// Requests for logs, and requests that become a WebSocket or SPDY, pass without faults.
type InjectingProxy struct {
	*proxy.Proxy
	// Injector injects the faults.
	Injector *Injector

	confinement *proxy.Confinement
	reads       *proxy.ReadRecorder
	watches     *proxy.Watches
	// admin sends requests of the proxy itself.
	admin *proxy.Upstream
}

// New starts an injecting proxy. The caller calls Close.
func New(o Options) (*InjectingProxy, error) {
	if o.Target == nil {
		return nil, errors.New("Options.Target is nil: name the API server")
	}
	if o.Admin == nil {
		o.Admin = o.Target
	}
	admin, err := proxy.NewUpstream(o.Admin)
	if err != nil {
		return nil, err
	}
	injector := NewInjector(admin)
	p := &InjectingProxy{
		Injector: injector, confinement: proxy.NewConfinement(o.Namespace, o.Target, admin),
		reads: &proxy.ReadRecorder{}, watches: proxy.NewWatches(injector), admin: admin,
	}
	p.Proxy, err = proxy.New(proxy.Options{
		Target: o.Target, Namespace: o.Namespace, HasPoints: true, Normalize: o.Normalize,
		Hooks: append(slices.Clone(o.Hooks), delay(o.Delay), proxy.JSONAnswers{}, p.reads, p.confinement, injector,
			p.confinement.Narrowing(), proxy.WriteRecorder{}, p.watches),
	})
	return p, err
}

// Close cuts all sessions off, and returns when all requests have ended.
func (p *InjectingProxy) Close() {
	p.Proxy.Close()
	p.admin.CloseIdleConnections()
}

// Activity returns the present activity.
func (p *InjectingProxy) Activity() proxy.Activity {
	a := p.Proxy.Activity()
	p.watches.AddActivity(&a)
	return a
}

// BeginStep begins a step of the user: points are counted from 1 again, and the faults of earlier steps end. The step
// is -1 until the first call.
func (p *InjectingProxy) BeginStep(ctx context.Context, step int) error {
	if err := p.Injector.BeginStep(ctx, step); err != nil {
		return err
	}
	p.SetStep(step)
	p.watches.BeginStep(step)
	return nil
}

// Created returns the paths of the objects in no namespace that the program has created: see
// [proxy.Confinement.Created].
func (p *InjectingProxy) Created() []string { return p.confinement.Created() }

// RemoveCreated removes the objects in no namespace that the program has created: see
// [proxy.Confinement.RemoveCreated].
func (p *InjectingProxy) RemoveCreated(ctx context.Context) error {
	return p.confinement.RemoveCreated(ctx)
}

// Deliveries returns the deliveries to programs on watches so far: see [proxy.Watches.Deliveries].
func (p *InjectingProxy) Deliveries() []proxy.Delivery { return p.watches.Deliveries() }

// Observations returns the versions of workloads that programs have received so far, in the order of time.
func (p *InjectingProxy) Observations() []proxy.Observation {
	all := append(p.reads.Observations(), p.watches.Observations()...)
	slices.SortStableFunc(all, func(a, b proxy.Observation) int { return a.At.Compare(b.At) })
	return all
}

// delay is a hook that delays each request.
type delay time.Duration

// RoundTrip implements [proxy.Hook].
func (d delay) RoundTrip(_ *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	if d > 0 && clock.SleepReal(r.Context(), time.Duration(d)) != nil {
		return nil, proxy.ErrBroken
	}
	return next(r)
}
