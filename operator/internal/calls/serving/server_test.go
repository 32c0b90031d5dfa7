package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/testkit/testcert"
)

// newCertificate returns a certificate for 127.0.0.1, and a pool that trusts it.
func newCertificate(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	c := testcert.New(t, x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}, nil)
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	return c, pool
}

// replicas are servers behind a load balancer that learns of their end too late.
type replicas struct {
	t           *testing.T
	certificate *tls.Certificate
	drainTime   time.Duration
	handler     http.Handler

	looks sync.Map

	mu      sync.Mutex
	current []*replica
}

type replica struct {
	server  *Server
	address string
}

// add starts a replica, and gives it new connections.
func (r *replicas) add() *replica {
	r.t.Helper()
	listener, err := new(net.ListenConfig).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	made := &replica{address: listener.Addr().String(), server: Serve(looks{listener, &r.looks}, r.handler, Options{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.certificate, nil },
		DrainTime:      r.drainTime, Log: slog.New(slog.DiscardHandler), Fail: func(err error) { r.t.Error(err) },
	})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = append(r.current, made)
	return made
}

// end ends a replica. The balancer learns of the end after a third of the time for draining.
func (r *replicas) end(old *replica) {
	old.server.Drain()
	time.Sleep(r.drainTime / 3)
	r.mu.Lock()
	for i, each := range r.current {
		if each == old {
			r.current = append(r.current[:i:i], r.current[i+1:]...)
			break
		}
	}
	r.mu.Unlock()
	old.server.Close(context.Background())
}

// dial connects to a replica that the balancer knows.
func (r *replicas) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	r.mu.Lock()
	address := r.current[mathrand.IntN(len(r.current))].address
	r.mu.Unlock()
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &callerConn{Conn: c}, nil
}

// callerConn is the end of a connection at the caller. It records when the first bytes of a request have been written.
type callerConn struct {
	net.Conn

	mu      sync.Mutex
	written time.Time
}

func (c *callerConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.written.IsZero() && err == nil {
		c.written = time.Now()
	}
	return n, err
}

// beginRequest records that a request begins.
func (c *callerConn) beginRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = time.Time{}
}

// hasArrivedBefore reports whether the first bytes of the request were written before a time.
func (c *callerConn) hasArrivedBefore(at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.written.IsZero() && c.written.Before(at)
}

// looks has the time of the last look at each connection of the servers, by the address of the caller.
type looks struct {
	net.Listener
	at *sync.Map
}

func (l looks) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return lookedAt{c, l.at}, nil
}

type lookedAt struct {
	net.Conn
	at *sync.Map
}

// SyscallConn is called before each look.
func (c lookedAt) SyscallConn() (syscall.RawConn, error) {
	c.at.Store(c.RemoteAddr().String(), time.Now())
	return c.Conn.(syscall.Conn).SyscallConn()
}

// Regression: at the end of a server, requests that arrived on idle connections were lost. Twenty replicas are replaced
// while callers, which keep their connections, send all the time or after pauses. No call fails whose first bytes had arrived
// when the server looked. A call that begins in the microseconds between this look and the end of the connection can fail with
// any server of HTTP/1.1: the test makes it again.
func TestReplacedReplicasFailNoCall(t *testing.T) {
	t.Parallel()
	certificate, pool := newCertificate(t)
	body := bytes.Repeat([]byte("x"), 100_000) // several reads
	r := &replicas{t: t, certificate: certificate, drainTime: 90 * time.Millisecond, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil || len(got) != len(body) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("ok")) // the caller may be gone
	})}
	r.add()
	current := r.add()
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var calls, late atomic.Int64
	for i := range 12 {
		client := &http.Client{Transport: &http.Transport{
			DialContext: r.dial, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}, MaxIdleConnsPerHost: 4,
		}}
		callers.Go(func() {
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				var used *callerConn
				trace := httptrace.WithClientTrace(context.WithoutCancel(ctx), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
					used = info.Conn.(*tls.Conn).NetConn().(*callerConn)
					used.beginRequest()
				}})
				// A reader that cannot be rewound: the transport repeats no call by itself.
				request, err := http.NewRequestWithContext(trace, http.MethodPost, "https://127.0.0.1/", io.NopCloser(bytes.NewReader(body)))
				if err != nil {
					t.Error(err)
					return
				}
				request.ContentLength = int64(len(body))
				answer, err := client.Do(request)
				if err != nil {
					look, hasLooked := r.looks.Load(used.LocalAddr().String())
					if !hasLooked || used.hasArrivedBefore(look.(time.Time)) {
						t.Errorf("call %d: %v", calls.Load(), err)
						return
					}
					late.Add(1)
					continue
				}
				got, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close() // it was read to its end
				if err != nil || string(got) != "ok" {
					t.Errorf("call %d: %s %q, %v", calls.Load(), answer.Status, got, err)
				}
				calls.Add(1)
				if i%3 == 0 { // a pause about as long as the drain
					time.Sleep(60*time.Millisecond + time.Duration(mathrand.IntN(80))*time.Millisecond)
				}
			}
		})
	}
	for range 20 {
		next := r.add()
		r.end(current)
		current = next
	}
	cancel()
	callers.Wait()
	for _, each := range r.current {
		each.server.Close(context.Background())
	}
	if late.Load() > 3 {
		t.Errorf("%d of %d calls began at the very end of a connection", late.Load(), calls.Load())
	}
	if calls.Load() < 100 {
		t.Errorf("%d calls were made, too few to prove anything", calls.Load())
	}
}

// A request whose bytes have arrived when the connection is to be closed is answered.
func TestRequestThatArrivesAtTheEnd(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := connListener{listener}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	c := accepted.(*conn)
	c.expire() // the deadline is over before the read begins
	if _, err := client.Write([]byte("POST")); err != nil {
		t.Fatal(err)
	}
	for !hasBytes(c.Conn) {
		time.Sleep(time.Millisecond)
	}
	got := make([]byte, 4)
	if n, err := c.Read(got); err != nil || string(got[:n]) != "POST" {
		t.Errorf("read %q, %v", got[:n], err)
	}
	c.recordIdle()
	c.expire()
	if n, err := c.Read(got); err == nil {
		t.Errorf("read %q of a connection without a request", got[:n])
	}
}

// Regression: an answer without an explicit status, as admission.Handler writes it, kept its connection open while the
// server drained. So the API server went on using a replica that ended.
func TestAnswersOfADrainingServerCloseTheirConnections(t *testing.T) {
	t.Parallel()
	certificate, pool := newCertificate(t)
	for _, isSecure := range []bool{true, false} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		options := Options{DrainTime: time.Minute, Log: slog.New(slog.DiscardHandler), Fail: func(err error) { t.Error(err) }}
		scheme := "http"
		if isSecure {
			scheme = "https"
			options.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
		}
		s := Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }), options)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
		for _, isDraining := range []bool{false, true} {
			if isDraining {
				s.Drain()
			}
			response, err := client.Get(scheme + "://" + listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.Close != isDraining {
				t.Errorf("%s: the answer closes its connection: %t, want %t", scheme, response.Close, isDraining)
			}
		}
		client.CloseIdleConnections()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the time for draining is not waited for
		s.Close(ctx)
	}
}
