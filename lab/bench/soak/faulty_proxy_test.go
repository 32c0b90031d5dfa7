package soak

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// faultyProxy is a proxy that the operator uses as its API server. It injects faults into requests at random, and faults of
// watches in turn.
type faultyProxy struct {
	proxy   *faults.InjectingProxy
	session *proxy.Session
	counts  counts

	mu     sync.Mutex
	random *rand.Rand
	// isFaulty is true while faults happen.
	isFaulty bool
}

// newFaultyProxy returns a proxy in front of the API server of a configuration.
func newFaultyProxy(t *testing.T, target *kube.Config) *faultyProxy {
	t.Helper()
	f := &faultyProxy{random: rand.New(rand.NewPCG(*seed, 1<<32))}
	var err error
	if f.proxy, err = faults.New(faults.Options{Target: target, Hooks: []proxy.Hook{f}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.proxy.Close)
	if f.session, err = f.proxy.NewSession("operator"); err != nil {
		t.Fatal(err)
	}
	return f
}

// requestFault is a fault of a request.
type requestFault struct {
	name string
	// chance is how many of 1,000 requests have the fault.
	chance int
	// code is the status of the answer in place of the server's, or 0.
	code int
	// isReset is true if the server does not receive the request, and isLost if the answer is lost.
	isReset, isLost bool
	// isSlow is true if the request waits.
	isSlow bool
}

func requestFaults() []requestFault {
	return []requestFault{
		{name: "429", chance: 5, code: http.StatusTooManyRequests},
		{name: "500", chance: 5, code: http.StatusInternalServerError},
		{name: "503", chance: 5, code: http.StatusServiceUnavailable},
		{name: "504", chance: 5, code: http.StatusGatewayTimeout},
		{name: "reset", chance: 5, isReset: true},
		{name: "lost answer", chance: 5, isLost: true},
		{name: "slow answer", chance: 10, isSlow: true},
	}
}

// RoundTrip implements [proxy.Hook].
func (f *faultyProxy) RoundTrip(_ *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	fault, delay := f.nextFault()
	switch {
	case fault.isReset:
		return nil, proxy.ErrBroken
	case fault.isSlow:
		if clock.SleepReal(r.Context(), delay) != nil {
			return nil, proxy.ErrBroken
		}
	case fault.isLost:
		response, err := next(r)
		if err == nil {
			response.Body.Close()
			err = proxy.ErrBroken
		}
		return nil, err
	case fault.code != 0:
		return proxy.Answer(proxy.NewStatus(fault.code, "", http.StatusText(fault.code))), nil
	}
	return next(r)
}

// nextFault returns the fault of the next request, and how long the request waits if the fault is slow.
func (f *faultyProxy) nextFault() (requestFault, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isFaulty {
		return requestFault{}, 0
	}
	n := f.random.IntN(1000)
	for _, each := range requestFaults() {
		if n -= each.chance; n < 0 {
			f.counts.add(each.name)
			return each, time.Duration(f.random.IntN(3000)) * time.Millisecond
		}
	}
	return requestFault{}, 0
}

// step is how long a fault of a watch lasts.
const step = 10 * time.Second

// injectFaults lets faults happen until ctx ends. Every ten seconds another fault of a watch begins,
// and every two minutes all requests in flight are cut.
func (f *faultyProxy) injectFaults(ctx context.Context) {
	f.setFaulty(true)
	defer f.setFaulty(false)
	kinds := []faults.Kind{faults.WatchLag, faults.WatchCut, faults.WatchExpired, faults.WatchMissed}
	streams := []string{"notes.soak.example.com", "configmaps"}
	var all []*faults.Armed
	defer func() {
		f.proxy.Injector.Disarm()
		for _, armed := range all {
			if armed.IsTriggered() {
				f.counts.add(string(armed.Fault().Kind))
			}
		}
	}()
	for i := 0; ; i++ {
		f.proxy.Injector.Disarm()
		if err := f.proxy.BeginStep(ctx, i); err == nil { // the API server may be down
			fault := faults.Fault{Kind: kinds[i%len(kinds)], Stream: streams[i/len(kinds)%len(streams)], Step: i, Events: f.intN(50)}
			armed, err := f.proxy.Injector.Arm(fault)
			if err != nil {
				panic(err) // the fault is one of those above
			}
			all = append(all, armed)
		}
		if i%12 == 11 {
			f.session.Break()
			f.counts.add("cut of all requests")
		}
		if clock.SleepReal(ctx, step) != nil {
			return
		}
	}
}

func (f *faultyProxy) setFaulty(isFaulty bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isFaulty = isFaulty
}

func (f *faultyProxy) intN(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}
