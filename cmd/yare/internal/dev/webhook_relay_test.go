package dev

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// startFront starts a relay, and returns it with a client that trusts its CA alone.
func startFront(t *testing.T) (*webhookRelay, *http.Client) {
	t.Helper()
	folder, err := os.MkdirTemp("", "relay") // the path of t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	f, err := newWebhookRelay(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	ca, err := os.ReadFile(f.caFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatal("the file of the CA holds no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return f, &http.Client{Transport: transport}
}

// frontAnswer is an answer of the relay without its body.
type frontAnswer struct {
	StatusCode int
	Header     http.Header
	Close      bool
}

// call calls the relay as an API server would, and returns the answer with its body.
func callFront(t *testing.T, f *webhookRelay, client *http.Client) (frontAnswer, string) {
	t.Helper()
	answer, err := client.Post(f.url+"/validate/x?timeout=10s", "application/json", strings.NewReader(`{"request":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return frontAnswer{answer.StatusCode, answer.Header, answer.Close}, string(body)
}

// serveSocket serves a handler on the socket of f until stop is called.
func serveSocket(t *testing.T, f *webhookRelay, handler http.HandlerFunc) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	stop = func() {
		_ = server.Close()
		<-served
	}
	t.Cleanup(stop)
	return stop
}

// checkUnavailable checks that the API server will repeat the call.
func checkUnavailable(t *testing.T, f *webhookRelay, client *http.Client) {
	t.Helper()
	answer, body := callFront(t, f, client)
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "1" || !answer.Close {
		t.Errorf("the answer is %d with %v, want 503 with Retry-After: 1 and Connection: close", answer.StatusCode, answer.Header)
	}
	if !strings.Contains(body, "not running") {
		t.Errorf("the answer does not say why: %q", body)
	}
}

func TestWebhookRelayForwards(t *testing.T) {
	t.Parallel()
	f, client := startFront(t)
	answer := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.String()+" "+string(body)+r.Header.Get("X-Forwarded-For"))
	}
	checkUnavailable(t, f, client)
	stop := serveSocket(t, f, answer)
	const want = `POST /validate/x?timeout=10s {"request":{}}`
	if a, body := callFront(t, f, client); a.StatusCode != http.StatusTeapot || body != want {
		t.Errorf("%d %q, want that of the operator: %q", a.StatusCode, body, want)
	}
	stop()
	checkUnavailable(t, f, client)
	serveSocket(t, f, answer)
	if a, body := callFront(t, f, client); a.StatusCode != http.StatusTeapot || body != want {
		t.Errorf("%d %q after a restart, want that of the operator: %q", a.StatusCode, body, want)
	}
}

// A killed operator leaves its socket, on which nobody listens.
func TestWebhookRelayWithASocketThatIsLeft(t *testing.T) {
	t.Parallel()
	f, client := startFront(t)
	listener, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = listener.Close()
	if _, err := os.Stat(f.socket); err != nil {
		t.Fatal(err)
	}
	checkUnavailable(t, f, client)
	f.pause()
	f.resume()
	serveSocket(t, f, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if a, _ := callFront(t, f, client); a.StatusCode != http.StatusTeapot {
		t.Errorf("the answer is %d, want that of the next operator", a.StatusCode)
	}
}

// An operator that crashes again and again is away for longer than an API server waits. Its user sees why.
func TestWebhookRelayWithAnOperatorThatIsAwayForLong(t *testing.T) {
	t.Parallel()
	f, client := startFront(t)
	f.recordAbsence(time.Second, "the operator ended")
	checkUnavailable(t, f, client)
	f.recordAbsence(time.Minute, "the operator ended by itself (exit status 3)")
	answer, body := callFront(t, f, client)
	if answer.StatusCode != http.StatusBadGateway || answer.Header.Get("Retry-After") != "" || !strings.Contains(body, "exit status 3") {
		t.Errorf("%d %v %q, want 502 with the reason", answer.StatusCode, answer.Header, body)
	}
	f.resume()
	checkUnavailable(t, f, client)
}

// A call that an operator took, and did not answer, must not be repeated: the operator may have ended because of it.
func TestWebhookRelayWithAnOperatorThatEndsDuringACall(t *testing.T) {
	t.Parallel()
	f, client := startFront(t)
	listener, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_ = c.Close()
	}()
	answer, body := callFront(t, f, client)
	if answer.StatusCode != http.StatusBadGateway || answer.Header.Get("Retry-After") != "" || !strings.Contains(body, "ended before it answered") {
		t.Errorf("%d %v %q, want 502 with the reason", answer.StatusCode, answer.Header, body)
	}
}

// While the operator is being stopped its socket still takes connections, which are lost with it.
func TestWebhookRelayPauses(t *testing.T) {
	t.Parallel()
	f, client := startFront(t)
	began, end := make(chan struct{}), make(chan struct{})
	serveSocket(t, f, func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-end
		w.WriteHeader(http.StatusTeapot)
	})
	first := make(chan int, 1)
	go func() {
		answer, err := client.Post(f.url, "application/json", strings.NewReader("{}"))
		if err != nil {
			first <- 0
			return
		}
		_ = answer.Body.Close()
		first <- answer.StatusCode
	}()
	<-began
	paused := make(chan struct{})
	go func() {
		defer close(paused)
		f.pause()
	}()
	for !isPaused(f) {
		time.Sleep(time.Millisecond)
	}
	checkUnavailable(t, f, client)
	select {
	case <-paused:
		t.Error("pause has not waited for the call")
	default:
	}
	close(end)
	<-paused
	if code := <-first; code != http.StatusTeapot {
		t.Errorf("the call that was under way is answered with %d", code)
	}
}

func isPaused(f *webhookRelay) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isPaused
}

func TestWebhookRelayWithALongPath(t *testing.T) {
	t.Parallel()
	_, err := newWebhookRelay(strings.Repeat("x", maxSocketPath))
	if err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("%v, want an error with the way out", err)
	}
}

// A relay that is missing changes nothing.
func TestNoWebhookRelay(t *testing.T) {
	t.Parallel()
	var f *webhookRelay
	f.pause()
	f.resume()
	f.recordAbsence(time.Hour, "the operator ended")
	f.close()
	if f.environment() != nil {
		t.Error("there are variables without a relay")
	}
}
