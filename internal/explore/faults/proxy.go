// Package faults is a proxy between a program and an API server. It injects faults that Kubernetes
// allows, narrows the program to the namespace of its run, and records the requests.
package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/kube"
)

// Options are the settings of a [Proxy].
type Options struct {
	// Target is the API server, with the rights that the program is to have. If these are the rights of an
	// impersonated user, the program itself must not impersonate anybody.
	Target *kube.Config
	// Admin is the same API server, with the rights for what the proxy itself does: it lists
	// namespaces, and annotates objects for [schedule.Conflict]. Default: Target.
	Admin *kube.Config
	// Namespace is the namespace of the run. Lists and watches of all namespaces are narrowed to it, and
	// writes of objects in other namespaces are refused with 403. Writes of namespaces that the
	// program has not made are refused, too. Default: no narrowing.
	Namespace string
	// Normalize replaces the random parts of a name by asterisks. Several goroutines call it at
	// the same time. Default: names stay as they are.
	Normalize func(name string) string
}

// Proxy is a proxy between a program and an API server. It serves HTTPS on the loopback address, with HTTP/2 and
// HTTP/1.1. All answers about objects are JSON. Requests for logs, and requests that become a WebSocket or SPDY,
// pass without faults. Its methods are safe for concurrent use.
type Proxy struct {
	options Options
	address string
	// ca is the certificate of the proxy in PEM.
	ca []byte

	target, admin *server
	scopes        scopes
	forward       *httputil.ReverseProxy
	http          *http.Server
	// serving counts the loop that accepts connections, and handlers counts the requests.
	serving, handlers sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	sessions map[string]*Session // by token
	delay    time.Duration
	step     int
	// stepVersion is the version of the server when the step began.
	stepVersion string
	// occurrences counts the requests of the step by their points without occurrence.
	occurrences map[schedule.Point]int
	armed       []*Armed
	exchanges   []*exchange
	streams     map[*stream]struct{}
	deliveries  []Delivery
	// delivered counts the events of the step.
	delivered map[selection]int
	// expiring holds the selections whose next watch from a version is answered with 410.
	expiring map[selection]*Armed
	// lastRequest and lastEvent are the times in [Activity].
	lastRequest, lastEvent time.Time
	// made holds the paths of the objects in no namespace that the program has made.
	made []string
}

// New starts a proxy.
func New(o Options) (*Proxy, error) {
	if o.Target == nil {
		return nil, errors.New("Options.Target is nil: name the API server")
	}
	if o.Admin == nil {
		o.Admin = o.Target
	}
	if o.Normalize == nil {
		o.Normalize = func(name string) string { return name }
	}
	p := &Proxy{
		options: o, step: -1, sessions: map[string]*Session{}, occurrences: map[schedule.Point]int{},
		streams: map[*stream]struct{}{}, delivered: map[selection]int{}, expiring: map[selection]*Armed{},
	}
	var err error
	if p.target, err = newServer(o.Target); err != nil {
		return nil, err
	}
	if p.admin, err = newServer(o.Admin); err != nil {
		return nil, err
	}
	p.scopes.server = p.admin
	certificate, pem, err := newCertificate()
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.address, p.ca = "https://"+listener.Addr().String(), pem
	quiet := log.New(io.Discard, "", 0) // clients are killed while they connect
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.target.url)
			r.Out.Header.Del("Authorization")   // the transport adds its own
			r.Out.Header.Del("Accept-Encoding") // the proxy reads answers
		},
		Transport:      p.target,
		FlushInterval:  -1, // so that each event of a watch is forwarded at once
		ModifyResponse: p.receive,
		// If the server gives no answer, the client gets none either: its connection breaks.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     quiet,
	}
	p.http = &http.Server{
		Handler:   http.HandlerFunc(p.serve),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:  quiet,
	}
	p.serving.Go(func() { _ = p.http.ServeTLS(listener, "", "") }) // it ends with Close
	return p, nil
}

// Close cuts all sessions off, and returns when all requests have ended.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for _, s := range p.sessions {
		s.cutOffLocked()
	}
	p.mu.Unlock()
	_ = p.http.Close() // nobody needs the listener any more
	p.handlers.Wait()
	p.serving.Wait()
	p.target.closeIdleConnections()
	p.admin.closeIdleConnections()
}

// Delay delays each later request by d.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// serve serves a request of a program. A panic with http.ErrAbortHandler breaks the connection, or
// the request if the program speaks HTTP/2.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.handlers.Done()
	session := p.sessionOf(r)
	if session == nil {
		writeStatus(w, newStatus(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the proxy does not know the token"))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	e := newExchange(session, r)
	query := r.URL.Query()
	delay, ok := p.begin(e, parseChange(r.Header.Get("Content-Type"), body), query, cancel)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	defer p.end(e)
	if delay > 0 && clock.SleepReal(ctx, delay) != nil {
		panic(http.ErrAbortHandler)
	}
	if status, ok := p.intervene(ctx, e, r); ok {
		p.refuse(w, e, status)
		return
	}
	if status, ok := p.awaitConnection(ctx, e); ok {
		p.refuse(w, e, status)
		return
	}
	if e.expires {
		p.recordAnswer(e, http.StatusOK)
		writeExpired(w)
		return
	}
	out := outgoing(context.WithValue(ctx, exchangeKey{}, e), r, query, body)
	if status, ok := p.narrow(ctx, e, out.URL); ok {
		p.refuse(w, e, status)
		return
	}
	if e.isAboutObjects() {
		out.Header.Set("Accept", acceptJSON(r.Header.Get("Accept")))
	}
	if e.pastGet {
		changeGetToList(out, e.parsed.Name)
	}
	p.forward.ServeHTTP(w, out)
}

// outgoing returns a copy of a request with another query, whose body was read.
func outgoing(ctx context.Context, r *http.Request, query url.Values, body []byte) *http.Request {
	out := r.Clone(ctx)
	out.URL.RawQuery = query.Encode()
	if len(body) == 0 {
		out.Body, out.ContentLength = http.NoBody, 0
		return out
	}
	// With GetBody the transport can send the request again on a new connection.
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return out
}

// refuse answers a request in place of the server.
func (p *Proxy) refuse(w http.ResponseWriter, e *exchange, status metav1.Status) {
	p.recordAnswer(e, int(status.Code))
	writeStatus(w, status)
}

// enter reports whether the proxy serves. If so, the caller calls handlers.Done.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.handlers.Add(1)
	return true
}

func (p *Proxy) sessionOf(r *http.Request) *Session {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[token]
}

// intervene carries out the faults that come before the server receives the request. It returns
// the answer in place of the server's, if there is one.
func (p *Proxy) intervene(ctx context.Context, e *exchange, r *http.Request) (metav1.Status, bool) {
	if e.OutOfBounds {
		return newStatus(http.StatusForbidden, metav1.StatusReasonForbidden,
			fmt.Sprintf("%s is forbidden: the run may write in the namespace %s only", e.Request, p.options.Namespace)), true
	}
	if p.options.Target.Impersonate.UserName != "" && r.Header.Get("Impersonate-User") != "" {
		return newStatus(http.StatusForbidden, metav1.StatusReasonForbidden,
			fmt.Sprintf("%s is forbidden: the program has the rights of %s, and may not impersonate %s", e.Request, p.options.Target.Impersonate.UserName, r.Header.Get("Impersonate-User"))), true
	}
	if e.refusesStreaming {
		return newStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden for watch: the server has no streaming lists"), true
	}
	if e.fault == nil {
		return metav1.Status{}, false
	}
	switch e.Fault {
	case schedule.Crash, schedule.LeaderKilled:
		e.session.CutOff()
		p.trigger(e.fault)
		panic(http.ErrAbortHandler)
	case schedule.Reset:
		p.trigger(e.fault)
		panic(http.ErrAbortHandler)
	case schedule.Conflict:
		exists, err := p.admin.annotate(ctx, strings.TrimSuffix(r.URL.Path, "/"+e.Point.Subresource), time.Now().Format(time.RFC3339Nano))
		if err == nil && !exists {
			err = fmt.Errorf("%s: the object does not exist", e.Request)
		}
		if err != nil {
			p.fail(e.fault, err)
			break
		}
		p.trigger(e.fault)
	case schedule.Refused429, schedule.Refused500, schedule.Refused503, schedule.Refused504:
		p.trigger(e.fault)
		return statusOf(e.Fault)
	case schedule.LeaderLost, schedule.LeaderHung, schedule.LeaderCut:
		e.session.isolate(isolationOf(e.Fault))
		p.trigger(e.fault)
	case schedule.ServerKilled, schedule.EtcdKilled, schedule.EtcdPaused:
		p.trigger(e.fault)
	}
	return metav1.Status{}, false
}

// receive handles a server's answer before the program receives it.
func (p *Proxy) receive(response *http.Response) error {
	e := response.Request.Context().Value(exchangeKey{}).(*exchange)
	if err := p.recordMade(e, response); err != nil {
		return err
	}
	switch e.Fault {
	case schedule.CommittedReset, schedule.Committed500, schedule.Committed504:
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return err
		}
		response.Body.Close()
		p.trigger(e.fault)
		status, ok := statusOf(e.Fault)
		if !ok {
			return errCut
		}
		replaceAnswer(response, status)
	}
	if err := p.recordWritten(e, response); err != nil {
		return err
	}
	switch {
	case response.StatusCode != http.StatusOK:
	case e.pastGet:
		if err := changeListToGet(response); err != nil {
			return err
		}
	case e.parsed.Verb == kube.VerbWatch && e.isAboutObjects():
		response.Body = p.newStream(e, response.Body, response.Request.Context().Done())
		response.ContentLength = -1
	}
	p.recordAnswer(e, response.StatusCode)
	return nil
}

var errCut = errors.New("the connection was cut")
