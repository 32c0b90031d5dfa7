package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/kube"
)

// leases is the resource of the objects by which replicas elect their leader.
const leases = "leases.coordination.k8s.io"

// isolation is the part of a session that the proxy keeps from the server, and from the program.
type isolation int

const (
	// connected keeps nothing back.
	connected isolation = iota
	// refusedLeases refuses requests for Leases, and holds watches of Leases.
	refusedLeases
	// heldLeases holds requests for Leases and watches of Leases.
	heldLeases
	// parted holds all requests and all watches.
	parted
)

// isolationOf returns the isolation of the leader under a fault.
func isolationOf(kind schedule.Kind) isolation {
	switch kind {
	case schedule.LeaderLost:
		return refusedLeases
	case schedule.LeaderHung:
		return heldLeases
	case schedule.LeaderCut:
		return parted
	}
	return connected
}

// keepsBack reports whether the isolation concerns an exchange.
func (i isolation) keepsBack(e *exchange) bool {
	switch i {
	case refusedLeases, heldLeases:
		return e.parsed.Resource == leases
	case parted:
		return true
	}
	return false
}

// Name returns the name that stands in [Request.Session].
func (s *Session) Name() string { return s.name }

// isolate begins an isolation.
func (s *Session) isolate(i isolation) {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	if s.reconnected == nil {
		s.reconnected = make(chan struct{})
	}
	s.isolation = i
}

// Reconnect ends the isolation of the session. The requests that were held, and that the program has not
// given up, reach the server then.
func (s *Session) Reconnect() {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	if s.reconnected == nil {
		return
	}
	close(s.reconnected)
	s.isolation, s.reconnected = connected, nil
	s.proxy.lastRequest = time.Now()
	s.proxy.wakeStreamsLocked()
}

// Session returns the session of the request that the fault concerned, or nil before the request.
func (a *Armed) Session() *Session {
	a.proxy.mu.Lock()
	defer a.proxy.mu.Unlock()
	return a.session
}

// awaitConnection waits until the isolation of its session lets a request pass. It returns the answer that
// replaces the server's answer, and reports whether there is one. It panics with http.ErrAbortHandler if the
// program has given the request up.
func (p *Proxy) awaitConnection(ctx context.Context, e *exchange) (metav1.Status, bool) {
	for {
		reconnected, isRefused := p.tryToSend(e)
		switch {
		case isRefused:
			return statusOf(schedule.Refused503)
		case reconnected == nil:
			return metav1.Status{}, false
		}
		select {
		case <-reconnected:
		case <-ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// tryToSend records that a request is sent on, unless the isolation of its session keeps the request back. In
// that case it reports that the request is refused, or returns the channel for which the request waits.
func (p *Proxy) tryToSend(e *exchange) (reconnected <-chan struct{}, isRefused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch s := e.session; {
	case !s.isolation.keepsBack(e):
		e.Sent = time.Now()
		return nil, false
	case s.isolation == refusedLeases:
		return nil, true
	default:
		return s.reconnected, false
	}
}

// recordWritten records the version of the object that a write has led to, and who holds a Lease that was
// written.
func (p *Proxy) recordWritten(e *exchange, response *http.Response) error {
	if !e.isAboutObjects() || !e.parsed.Verb.IsWrite() || e.parsed.Verb == kube.VerbDeleteCollection ||
		response.StatusCode < 200 || response.StatusCode > 299 || response.Request.URL.Query().Has("dryRun") {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the answer to %s: %w", e.Request, err)
	}
	response.Body.Close()
	setBody(response, body)
	var stored struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(body, &stored) != nil {
		return nil // the body is no object
	}
	var lease struct {
		HolderIdentity       string `json:"holderIdentity"`
		LeaseDurationSeconds int    `json:"leaseDurationSeconds"`
	}
	if e.parsed.Resource == leases && stored.Spec != nil {
		if err := json.Unmarshal(stored.Spec, &lease); err != nil {
			return fmt.Errorf("read the Lease in the answer to %s: %w", e.Request, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e.Version = stored.Metadata.ResourceVersion
	e.Holder, e.LeaseDuration = lease.HolderIdentity, time.Duration(lease.LeaseDurationSeconds)*time.Second
	return nil
}
