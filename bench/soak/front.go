package main

import (
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/bench/internal/loopback"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// front is a proxy that the operator uses as its API server. It injects faults into requests at random. The
// proxy of explorations behind it injects the faults of watches.
type front struct {
	proxy   *faults.Proxy
	server  *loopback.Server
	forward *httputil.ReverseProxy
	counts  counts

	mu     sync.Mutex
	random *rand.Rand
	// isFaulty is true while faults happen.
	isFaulty bool
	// connected ends when all requests in flight are cut.
	connected context.Context //nolint:containedctx // it is the life of connections
	cut       context.CancelFunc
}

// newFront returns a front of the API server of a kubeconfig. It writes its own kubeconfig into dir.
func newFront(kubeconfig, dir string, seed uint64) (*front, error) {
	config, _, err := kube.ConfigSource{Kubeconfig: kubeconfig}.Load()
	if err != nil {
		return nil, err
	}
	f := &front{random: rand.New(rand.NewPCG(seed, 1<<32))}
	f.connected, f.cut = context.WithCancel(context.Background())
	if f.proxy, err = faults.New(faults.Options{Target: config}); err != nil {
		return nil, err
	}
	if err := f.serve(dir); err != nil {
		f.proxy.Close()
		return nil, err
	}
	return f, nil
}

// serve starts the server of the front.
func (f *front) serve(dir string) error {
	session, err := f.proxy.Session("operator")
	if err != nil {
		return err
	}
	transport, err := kube.NewRoundTripper(session.Config())
	if err != nil {
		return err
	}
	target, err := url.Parse(session.Config().Host)
	if err != nil {
		return err
	}
	f.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization") // the transport has the rights
		},
		Transport:     transport,
		FlushInterval: -1, // watches
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Context().Value(losesAnswer{}) != nil {
				return errors.New("the answer is lost")
			}
			return nil
		},
		// If the server gives no answer, the operator gets none either.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	f.server, err = loopback.Start(dir, http.HandlerFunc(f.handle))
	return err
}

func (f *front) kubeconfig() string { return f.server.Kubeconfig() }

func (f *front) close() {
	f.server.Close()
	f.proxy.Close()
	f.cut()
}

// losesAnswer is the key of requests whose answers are lost, in their contexts.
type losesAnswer struct{}

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

// handle serves a request of the operator.
func (f *front) handle(w http.ResponseWriter, r *http.Request) {
	fault, delay, connected := f.nextFault()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(connected, cancel)()
	switch {
	case fault.isReset:
		panic(http.ErrAbortHandler)
	case fault.isSlow:
		if clock.SleepReal(ctx, delay) != nil {
			panic(http.ErrAbortHandler)
		}
	case fault.isLost:
		ctx = context.WithValue(ctx, losesAnswer{}, true)
	case fault.code != 0:
		refuse(w, fault.code)
		return
	}
	f.forward.ServeHTTP(w, r.WithContext(ctx))
}

// refuse answers a request like an API server that cannot serve it.
func refuse(w http.ResponseWriter, code int) {
	body, err := kube.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Message: http.StatusText(code),
	})
	if err != nil {
		panic(err) // a Status is plain data
	}
	w.Header().Set("Content-Type", kube.ContentJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_, _ = w.Write(body) // the operator may be gone
}

// nextFault returns the fault of the next request, how long the request waits if the fault is slow,
// and the context that ends with the next cut.
func (f *front) nextFault() (requestFault, time.Duration, context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isFaulty {
		return requestFault{}, 0, f.connected
	}
	n := f.random.IntN(1000)
	for _, each := range requestFaults() {
		if n -= each.chance; n < 0 {
			f.counts.add(each.name)
			return each, time.Duration(f.random.IntN(3000)) * time.Millisecond, f.connected
		}
	}
	return requestFault{}, 0, f.connected
}

// step is how long a fault of a watch lasts.
const step = 10 * time.Second

// injectFaults lets faults happen until ctx ends. Every ten seconds another fault of a watch begins,
// and every two minutes all requests in flight are cut.
func (f *front) injectFaults(ctx context.Context) {
	f.setFaulty(true)
	defer f.setFaulty(false)
	kinds := []faults.Kind{faults.WatchLag, faults.WatchCut, faults.WatchExpired, faults.WatchMissed}
	streams := []string{"notes.soak.example.com", "configmaps"}
	var happened []func() // counts each fault of a watch that has happened by the end
	defer func() {
		f.proxy.Disarm()
		for _, count := range happened {
			count()
		}
	}()
	for i := 0; ; i++ {
		f.proxy.Disarm()
		if err := f.proxy.BeginStep(ctx, i); err == nil { // the API server may be down
			fault := faults.Fault{Kind: kinds[i%len(kinds)], Stream: streams[i/len(kinds)%len(streams)], Step: i, Events: f.intN(50)}
			armed, err := f.proxy.Arm(fault)
			if err != nil {
				panic(err) // the fault is one of those above
			}
			happened = append(happened, func() { f.count(armed, string(fault.Kind)) })
		}
		if i%12 == 11 {
			f.cutAll()
		}
		if clock.SleepReal(ctx, step) != nil {
			return
		}
	}
}

// count counts a fault that has happened.
func (f *front) count(armed *faults.Armed, name string) {
	select {
	case <-armed.Triggered():
		f.counts.add(name)
	default:
	}
}

// cutAll cuts all requests in flight.
func (f *front) cutAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut()
	f.connected, f.cut = context.WithCancel(context.Background())
	f.counts.add("cut of all requests")
}

func (f *front) setFaulty(isFaulty bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isFaulty = isFaulty
}

func (f *front) intN(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}
