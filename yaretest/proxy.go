package yaretest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Proxy is a proxy of the API server that records the requests sent through the proxy. The proxy can
// be cut: now, or at the n-th write, before or after the server carried out the write. A test that
// cuts at each write of a program sees what a crash between its writes leaves.
//
//	proxy := cluster.Proxy(t)
//	proxy.CutAfterWrite(2)
//	p := yaretest.Run(t, proxy.Kubeconfig(), program)
//	proxy.WaitForCut(t)
//	p.Kill()
//	proxy.Mend()
//
// All requests through the proxy have the rights of the administrator or of the account from which the
// proxy was made.
type Proxy struct {
	cluster    *Cluster
	kubeconfig string
	proxy      *proxy.Proxy
	cutter     *cutter
}

func newProxy(t testing.TB, cluster *Cluster, config *kube.Config, namespace string) *Proxy {
	t.Helper()
	p := &Proxy{cluster: cluster, cutter: newCutter()}
	var err error
	p.proxy, err = proxy.New(proxy.Options{Target: config, Namespace: namespace, Hooks: []proxy.Hook{p.cutter}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.proxy.Close)
	session, err := p.proxy.NewSession("test")
	if err != nil {
		t.Fatal(err)
	}
	p.kubeconfig = writeKubeconfig(t, session.Kubeconfig())
	return p
}

func (p *Proxy) targetCluster() *Cluster { return p.cluster }

// Kubeconfig returns the path of a kubeconfig file whose server is the proxy.
func (p *Proxy) Kubeconfig() string { return p.kubeconfig }

// CutBeforeWrite cuts the proxy at the n-th write from now on, counted from 1, before the server receives the write.
func (p *Proxy) CutBeforeWrite(n int) { p.cutter.cutAt(n, beforeWrite) }

// CutAfterWrite cuts the proxy at the n-th write from now on, counted from 1, after the server carried out the write
// and before the client receives the answer. A client sees no difference to [Proxy.CutBeforeWrite].
func (p *Proxy) CutAfterWrite(n int) { p.cutter.cutAt(n, afterWrite) }

// CutNow breaks all connections, and refuses new ones until Mend.
func (p *Proxy) CutNow() { p.cutter.cutNow() }

// WaitForCut waits until the proxy has been cut. It fails t when the timeout is over, as with [Eventually], for example
// because the program fails before the write at which the proxy is to be cut.
func (p *Proxy) WaitForCut(t testing.TB) {
	t.Helper()
	Eventually(t, func() error {
		select {
		case <-p.cutter.wasCut():
			return nil
		default:
			return fmt.Errorf("the proxy was not cut: it has seen %d writes", len(p.Writes()))
		}
	})
}

// Mend ends a cut, and cancels a cut that has not happened yet.
func (p *Proxy) Mend() { p.cutter.mend() }

// Requests returns all requests so far, in the order in which they came. Requests that were
// refused because of a cut are included, with the code 0.
func (p *Proxy) Requests() []Request {
	var all []Request
	for _, r := range p.proxy.Requests() {
		all = append(all, newRequest(r))
	}
	return all
}

// Writes returns the requests so far whose verb is a write.
func (p *Proxy) Writes() []Request {
	var writes []Request
	for _, r := range p.Requests() {
		if r.Verb.IsWrite() {
			writes = append(writes, r)
		}
	}
	return writes
}

// requestsButWatches returns the requests so far whose verb is not watch.
func (p *Proxy) requestsButWatches() []Request {
	return slices.DeleteFunc(p.Requests(), func(r Request) bool { return r.Verb == wire.VerbWatch })
}

// lastRequest returns the last request that is no watch, and when it was over.
func (p *Proxy) lastRequest() (last Request, over time.Time) {
	for _, r := range p.requestsButWatches() {
		end := r.Ended
		if end.IsZero() {
			end = time.Now()
		}
		if !end.Before(over) {
			last, over = r, end
		}
	}
	return last, over
}

// idleTime is how long nothing must have happened before a program counts as idle.
const idleTime = time.Second

// RequireIdle waits until the programs are idle: for a second they have made no request but
// watches, and reconciled nothing but what they had requeued with controller.RequeueAfter. Then
// it fails t if such a request or reconcile happens within d. It finds reconciles in the logs of
// programs, which must run with -v. Without programs it looks at requests only.
func (p *Proxy) RequireIdle(t testing.TB, d time.Duration, programs ...*Process) {
	t.Helper()
	count, since := 0, time.Now()
	Eventually(t, func() error {
		last, asked := p.lastRequest()
		if time.Since(asked) < idleTime {
			return fmt.Errorf("the program does not become idle: the last request was %s", last)
		}
		calls := reconcilesWithoutRequeue(t, programs)
		if len(calls) != count {
			count, since = len(calls), time.Now()
		}
		if len(calls) > 0 && time.Since(since) < idleTime {
			return fmt.Errorf("the program does not become idle: the last reconcile was %s", calls[len(calls)-1])
		}
		return nil
	})
	before := p.requestsButWatches()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal("the test ended before its program had been idle")
	}
	if more := p.requestsButWatches(); len(more) > len(before) {
		t.Errorf("within %s the program made %d requests besides its watches:", d, len(more)-len(before))
		for _, r := range more[len(before):] {
			t.Errorf("  %s", r)
		}
	}
	if calls := reconcilesWithoutRequeue(t, programs); len(calls) > count {
		t.Errorf("within %s the program reconciled %d times without a requeue:", d, len(calls)-count)
		for _, call := range calls[count:] {
			t.Errorf("  %s", call)
		}
	}
}

// reconcilesWithoutRequeue returns the log lines of reconciles whose cause was not a requeue.
func reconcilesWithoutRequeue(t testing.TB, programs []*Process) (reconciles []string) {
	t.Helper()
	for _, program := range programs {
		hasLogged := false
		for _, line := range program.Log() {
			var entry struct {
				Cause *string  `json:"cause"`
				Took  *float64 `json:"took"` // in seconds
			}
			if json.Unmarshal([]byte(line), &entry) != nil || entry.Cause == nil || entry.Took == nil {
				continue
			}
			hasLogged = true
			if *entry.Cause != "requeue" {
				reconciles = append(reconciles, line)
			}
		}
		if !hasLogged {
			t.Fatalf("%s has logged no reconcile: run it with -v, and let it have something to do", program.command)
		}
	}
	return reconciles
}
