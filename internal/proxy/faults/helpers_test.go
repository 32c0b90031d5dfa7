package faults_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// upstream is an API server of which a test writes the events.
type upstream struct {
	url   string
	close func()

	mu       sync.Mutex
	received []string
	// events holds the events of each open watch.
	events []chan string
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{}
	server := httptest.NewServer(http.HandlerFunc(u.serve))
	t.Cleanup(server.Close)
	u.url, u.close = server.URL, server.Close
	return u
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path { // requests of the proxy itself
	case "/api/v1/namespaces":
		fmt.Fprint(w, `{"metadata":{"resourceVersion":"100"}}`)
		return
	case "/api/v1":
		fmt.Fprint(w, `{"resources":[{"name":"configmaps","namespaced":true},{"name":"nodes","namespaced":false}]}`)
		return
	}
	line := r.Method + " " + r.URL.RequestURI()
	if len(body) > 0 {
		line += " " + string(body)
	}
	events := make(chan string, 100)
	isWatch := r.URL.Query().Get("watch") == "true"
	u.mu.Lock()
	u.received = append(u.received, line)
	if isWatch {
		u.events = append(u.events, events)
	}
	u.mu.Unlock()
	if !isWatch && strings.Contains(r.URL.Path, "/leases/") {
		_, _ = w.Write(body)
		return
	}
	if !isWatch {
		fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"100"},"items":[{"metadata":{"name":"a"}}]}`)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case event := <-events:
			fmt.Fprintln(w, event)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// send sends an event to the watch that was opened last.
func (u *upstream) send(kind, version string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.events[len(u.events)-1] <- event(kind, version)
}

func (u *upstream) requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.received)
}

func event(kind, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"metadata":{"name":"a","resourceVersion":%q}}}`, kind, version)
}

func newProxy(t *testing.T, o faults.Options) *faults.InjectingProxy {
	t.Helper()
	p, err := faults.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// program sends requests, through a proxy if it has a session.
type program struct {
	t         *testing.T
	session   *proxy.Session
	host      string
	transport http.RoundTripper
}

func newProgram(t *testing.T, p *faults.InjectingProxy, name string) *program {
	t.Helper()
	session, err := p.NewSession(name)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := kube.NewRoundTripper(session.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &program{t: t, session: session, host: session.Config().Host, transport: transport}
}

// open sends a request, and returns its answer, which the caller closes.
func (p *program) open(method, path, body string) (*http.Response, error) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.host+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return p.transport.RoundTrip(r)
}

// send sends a request, and returns the status and the body of the answer. The status is 0 if the
// connection broke.
func (p *program) send(method, path, body string) (int, string) {
	p.t.Helper()
	response, err := p.open(method, path, body)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(answer)
}

// watching is an open watch of a program.
type watching struct {
	t      *testing.T
	events chan string
}

func (p *program) watch(path string) *watching {
	p.t.Helper()
	response, err := p.open(http.MethodGet, path, "") //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		p.t.Fatal(err)
	}
	w := &watching{t: p.t, events: make(chan string, 100)}
	go func() {
		defer close(w.events)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			var event struct {
				Type   string
				Object struct {
					Code     int
					Metadata struct{ ResourceVersion string }
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				w.events <- err.Error()
				return
			}
			text := event.Type + " " + event.Object.Metadata.ResourceVersion
			if event.Type == "ERROR" {
				text = fmt.Sprint("ERROR ", event.Object.Code)
			}
			w.events <- text
		}
		if lines.Err() != nil {
			w.events <- "broken"
		}
	}()
	return w
}

// want fails the test unless these events come next. The event "broken" is the end of the
// connection.
func (w *watching) want(events ...string) {
	w.t.Helper()
	for _, want := range events {
		select {
		case got := <-w.events:
			if got != want {
				w.t.Fatalf("the watch returns %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			w.t.Fatalf("the watch returns nothing, want %q", want)
		}
	}
}

// wantNothing fails the test if an event has come.
func (w *watching) wantNothing() {
	w.t.Helper()
	select {
	case got := <-w.events:
		w.t.Fatalf("the watch returns %q, want nothing", got)
	default:
	}
}

func begin(t *testing.T, p *faults.InjectingProxy, step int) {
	t.Helper()
	if err := p.BeginStep(t.Context(), step); err != nil {
		t.Fatal(err)
	}
}

func arm(t *testing.T, p *faults.InjectingProxy, f faults.Fault) *faults.Armed {
	t.Helper()
	a, err := p.Injector.Arm(f)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func isTriggered(a *faults.Armed) bool {
	select {
	case <-a.Triggered():
		return true
	default:
		return false
	}
}

// waitTriggered waits until a fault has happened.
func waitTriggered(t *testing.T, a *faults.Armed) {
	t.Helper()
	select {
	case <-a.Triggered():
	case <-time.After(time.Minute):
		t.Fatal("the fault does not happen")
	}
}
