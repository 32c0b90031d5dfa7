package faults_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/proxy/faults"
)

const (
	leasePath = "/apis/coordination.k8s.io/v1/namespaces/run/leases/l"
	leaseBody = `{"metadata":{"name":"l","resourceVersion":"7"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15}}`
)

// armAtPatch arms a fault at the next patch of the object a that a program makes.
func armAtPatch(t *testing.T, p *faults.InjectingProxy, program *program, kind faults.Kind) *faults.Armed {
	t.Helper()
	program.send(http.MethodPatch, maps+"/a", `{"data":{"k":"v"}}`)
	point := p.Requests()[len(p.Requests())-1].Point
	point.Step = 0
	begin(t, p, 0)
	return arm(t, p, faults.Fault{Kind: kind, At: &point})
}

// A leader that has lost its lease reaches the server with all its requests but requests for Leases.
func TestLeaderLosesItsLease(t *testing.T) {
	t.Parallel()
	p := newProxy(t, options(newUpstream(t)))
	leader, standby := newProgram(t, p, "leader"), newProgram(t, p, "standby")
	a := armAtPatch(t, p, leader, faults.LeaderLost)
	if code, _ := leader.send(http.MethodPatch, maps+"/a", `{"data":{"k":"v"}}`); code != http.StatusOK {
		t.Errorf("the write of the fault is answered with %d", code)
	}
	if !isTriggered(a) || a.Session() != leader.session {
		t.Errorf("the fault concerned %v", a.Session())
	}
	if code, _ := leader.send(http.MethodPut, leasePath, leaseBody); code != http.StatusServiceUnavailable {
		t.Errorf("the renewal of the leader is answered with %d", code)
	}
	if code, _ := leader.send(http.MethodPatch, maps+"/a", `{"data":{"k":"w"}}`); code != http.StatusOK {
		t.Errorf("the next write of the leader is answered with %d", code)
	}
	if code, _ := standby.send(http.MethodPut, leasePath, leaseBody); code != http.StatusOK {
		t.Errorf("the claim of the standby is answered with %d", code)
	}
	a.End()
	if code, _ := leader.send(http.MethodPut, leasePath, leaseBody); code != http.StatusOK {
		t.Errorf("the renewal after the fault is answered with %d", code)
	}
}

// Requests of a leader that is cut wait. Requests given up by the leader never reach the server.
func TestLeaderIsCut(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := newProxy(t, options(u))
	leader, standby := newProgram(t, p, "leader"), newProgram(t, p, "standby")
	w := leader.watch(maps + "?watch=true")
	u.send("ADDED", "1")
	w.want("ADDED 1")
	a := armAtPatch(t, p, leader, faults.LeaderCut)
	before := len(u.requests())
	held := make(chan int)
	go func() {
		code, _ := leader.send(http.MethodPatch, maps+"/a", `{"data":{"k":"v"}}`)
		held <- code
	}()
	waitTriggered(t, a)
	given := make(chan error)
	go func() { // the program ends the wait for the answer
		client := http.Client{Transport: leader.transport, Timeout: 200 * time.Millisecond}
		_, err := client.Get(leader.host + maps + "/given-up") //nolint:bodyclose // there is no answer
		given <- err
	}()
	if err := <-given; err == nil {
		t.Error("a request of a leader that is cut is answered")
	}
	u.send("ADDED", "2")
	if code, _ := standby.send(http.MethodGet, maps, ""); code != http.StatusOK {
		t.Errorf("the standby is answered with %d", code)
	}
	w.wantNothing()
	if received := u.requests()[before:]; len(received) != 1 {
		t.Errorf("the server received %q", received)
	}
	a.End()
	if code := <-held; code != http.StatusOK {
		t.Errorf("the write that was held is answered with %d", code)
	}
	w.want("ADDED 2")
	if received := u.requests(); slices.ContainsFunc(received, func(line string) bool { return strings.Contains(line, "given-up") }) {
		t.Errorf("the server received a request that was given up: %q", received)
	}
}

// A leader that is killed at a write gets no answer any more.
func TestLeaderIsKilled(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	p := newProxy(t, options(u))
	leader := newProgram(t, p, "leader")
	a := armAtPatch(t, p, leader, faults.LeaderKilled)
	if code, _ := leader.send(http.MethodPatch, maps+"/a", `{"data":{"k":"v"}}`); code != 0 || !isTriggered(a) {
		t.Errorf("the write is answered with %d", code)
	}
	if code, _ := leader.send(http.MethodGet, maps, ""); code != 0 || len(u.requests()) != 1 {
		t.Errorf("a request after it is answered with %d", code)
	}
}

// The proxy records the holder of a Lease, and the version that a write has led to.
func TestProxyRecordsClaims(t *testing.T) {
	t.Parallel()
	p := newProxy(t, options(newUpstream(t)))
	program := newProgram(t, p, "program")
	if _, answer := program.send(http.MethodPut, leasePath, leaseBody); answer != leaseBody {
		t.Errorf("the answer is %s", answer)
	}
	program.send(http.MethodPatch, maps+"/a", `{}`)
	program.send(http.MethodGet, maps, "")
	all := p.Requests()
	if r := all[0]; r.Holder != "a" || r.LeaseDuration != 15*time.Second || r.Version != "7" || r.Sent.IsZero() {
		t.Errorf("the claim is recorded as %+v", r)
	}
	if r := all[1]; r.Version != "100" || r.Holder != "" {
		t.Errorf("the write is recorded as %+v", r)
	}
	if r := all[2]; r.Version != "" {
		t.Errorf("the list is recorded as %+v", r)
	}
}
