package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/testkit/testcert"
	"github.com/yare-go/yare/kube/wire"
)

// serve returns a client of a server over HTTP.
func serve(t *testing.T, h http.HandlerFunc, changes ...func(*Config)) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	config := &Config{Host: server.URL}
	for _, change := range changes {
		change(config)
	}
	return clientOf(t, config)
}

// withTimeout returns a change of a configuration that sets the timeout.
func withTimeout(d time.Duration) func(*Config) { return func(c *Config) { c.Timeout = d } }

func clientOf(t *testing.T, config *Config) *Client {
	t.Helper()
	c, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// never answers until the client or the test goes. It reads the body first, or net/http
// would not notice that the client has gone.
func never(t *testing.T) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-t.Context().Done():
		}
	}
}
func TestURLs(t *testing.T) {
	t.Parallel()
	deployments := wire.Resource{Plural: "deployments"}
	deployments.Group, deployments.Version, deployments.Kind = "apps", "v1", "Deployment"
	nodes := wire.Resource{Plural: "nodes", ClusterScoped: true}
	nodes.Version, nodes.Kind = "v1", "Node"
	pods := wire.Resource{Plural: "pods"}
	pods.Version, pods.Kind = "v1", "Pod"

	var mu sync.Mutex
	var got string
	handler := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = r.Method + " " + r.URL.RequestURI()
		_, _ = io.WriteString(w, `{}`)
	}
	server := httptest.NewServer(http.HandlerFunc(handler))
	t.Cleanup(server.Close)
	for _, test := range []struct {
		prefix string
		r      wire.Request
		want   string
	}{
		{"", wire.Request{Verb: wire.VerbGet, Resource: pods, Namespace: "ns", Name: "p"}, "GET /api/v1/namespaces/ns/pods/p"},
		{"", wire.Request{Verb: wire.VerbList, Resource: pods}, "GET /api/v1/pods"},
		{"", wire.Request{Verb: wire.VerbList, Resource: pods, Namespace: "ns", Query: url.Values{"labelSelector": {"a in (b,c)"}}}, "GET /api/v1/namespaces/ns/pods?labelSelector=a+in+%28b%2Cc%29"},
		{"", wire.Request{Verb: wire.VerbWatch, Resource: pods, Query: url.Values{"resourceVersion": {"7"}}}, "GET /api/v1/pods?resourceVersion=7&watch=true"},
		{"", wire.Request{Verb: wire.VerbCreate, Resource: deployments, Namespace: "ns"}, "POST /apis/apps/v1/namespaces/ns/deployments"},
		{"", wire.Request{Verb: wire.VerbCreate, Resource: pods, Namespace: "ns", Name: "p", Subresource: "eviction"}, "POST /api/v1/namespaces/ns/pods/p/eviction"},
		{"", wire.Request{Verb: wire.VerbUpdate, Resource: nodes, Name: "n", Subresource: "status"}, "PUT /api/v1/nodes/n/status"},
		{"", wire.Request{Verb: wire.VerbPatch, Resource: deployments, Namespace: "ns", Name: "d", Subresource: "scale"}, "PATCH /apis/apps/v1/namespaces/ns/deployments/d/scale"},
		{"", wire.Request{Verb: wire.VerbDelete, Resource: nodes, Name: "n"}, "DELETE /api/v1/nodes/n"},
		{"", wire.Request{Verb: wire.VerbDeleteCollection, Resource: pods, Namespace: "ns"}, "DELETE /api/v1/namespaces/ns/pods"},
		{"/k8s/clusters/c-1", wire.Request{Verb: wire.VerbGet, Resource: nodes, Name: "n"}, "GET /k8s/clusters/c-1/api/v1/nodes/n"},
		{"/prefix/", wire.Request{Verb: wire.VerbGet, Resource: nodes, Name: "n"}, "GET /prefix/api/v1/nodes/n"},
		{"", wire.Request{Verb: wire.VerbGet, Resource: nodes, Name: "system:a b?c#d"}, "GET /api/v1/nodes/system:a%20b%3Fc%23d"},
	} {
		c := clientOf(t, &Config{Host: server.URL + test.prefix})
		response, err := c.Do(t.Context(), &test.r)
		if err != nil {
			t.Errorf("%s: %v", test.want, err)
			continue
		}
		if response.BodyReader != nil {
			_ = response.BodyReader.Close()
		}
		mu.Lock()
		if got != test.want {
			t.Errorf("asked for %s, want %s", got, test.want)
		}
		mu.Unlock()
	}
}

// Bug: a request for the object "p/status" went to the status of the object p.
func TestNameCannotLeadElsewhere(t *testing.T) {
	t.Parallel()
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	for _, name := range []string{"p/status", "..", ".", "a%2fb"} {
		_, err := Get[corev1.Pod](t.Context(), c, "ns", name)
		wantError(t, err, fmt.Sprintf("%q may not", name))
		_, err = Get[corev1.Pod](t.Context(), c, name, "p")
		wantError(t, err, fmt.Sprintf("%q may not", name))
		_, err = c.Do(t.Context(), &wire.Request{Verb: wire.VerbGet, Resource: podResource, Namespace: "ns", Name: name})
		wantError(t, err, fmt.Sprintf("%q may not", name))
		_, err = Namespaced[corev1.Pod](c, "ns").Apply(t.Context(), &corev1.Pod{ObjectMeta: named("", name)})
		wantError(t, err, fmt.Sprintf("%q may not", name))
	}
}
func TestHeaders(t *testing.T) {
	t.Parallel()
	headers := make(chan http.Header, 1)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		_, _ = io.WriteString(w, `{}`)
	})
	program := filepath.Base(os.Args[0]) + "/yare"
	gadgets, err := ResourceOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	const metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	const metadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	ctx := t.Context()
	for _, test := range []struct {
		name            string
		do              func() error
		accept, content string
	}{
		{"get", func() error { _, err := Get[corev1.Pod](ctx, c, "ns", "p"); return err }, wire.ContentJSON, ""},
		{"get metadata", func() error { _, err := Metadata(c, gadgets, "ns").Get(ctx, "g"); return err }, metadata, ""},
		{"list metadata", func() error { _, err := Metadata(c, gadgets, "").List(ctx); return err }, metadataList, ""},
		{"watch metadata", func() error {
			for range Metadata(c, gadgets, "").Watch(ctx, "7") {
				break
			}
			return nil
		}, metadata, ""},
		{"create", func() error {
			_, err := Everywhere[corev1.Pod](c).Create(ctx, &corev1.Pod{ObjectMeta: named("ns", "p")})
			return err
		}, wire.ContentJSON, wire.ContentJSON},
		{"apply", func() error { _, err := Apply(ctx, c, &corev1.Pod{ObjectMeta: named("ns", "p")}); return err }, wire.ContentJSON, wire.ContentApply},
		{"merge", func() error {
			_, err := Namespaced[corev1.Pod](c, "ns").Patch(ctx, "p", MergePatch(map[string]any{}))
			return err
		}, wire.ContentJSON, wire.ContentMergePatch},
		{"JSON patch", func() error {
			_, err := Namespaced[corev1.Pod](c, "ns").Patch(ctx, "p", JSONPatch(RemoveAt("/a")))
			return err
		}, wire.ContentJSON, wire.ContentJSONPatch},
		{"strategic", func() error {
			_, err := Namespaced[corev1.Pod](c, "ns").Patch(ctx, "p", StrategicPatch(map[string]any{}))
			return err
		}, wire.ContentJSON, wire.ContentStrategicPatch},
		{"delete", func() error { return Namespaced[corev1.Pod](c, "ns").Delete(ctx, "p", RequireUID("u")) }, wire.ContentJSON, wire.ContentJSON},
		{"delete without options", func() error { return Namespaced[corev1.Pod](c, "ns").Delete(ctx, "p") }, wire.ContentJSON, ""},
	} {
		if err := test.do(); err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		got := <-headers
		for name, want := range map[string]string{"Accept": test.accept, "Content-Type": test.content, "User-Agent": program} {
			if got.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", test.name, name, got.Get(name), want)
			}
		}
	}
}
func TestUserAgentOfTheConfiguration(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"metadata":{"name":%q}}`, r.UserAgent())
	}))
	t.Cleanup(server.Close)
	c := clientOf(t, &Config{Host: server.URL, UserAgent: "mine/1"})
	pod, err := Get[corev1.Pod](t.Context(), c, "ns", "p")
	if err != nil || pod.Name != "mine/1" {
		t.Errorf("the server saw %q: %v", pod.GetName(), err)
	}
}
func TestWarnings(t *testing.T) {
	t.Parallel()
	var texts []string
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "v1beta1 is deprecated"`)
		w.Header().Add("Warning", `199 - "something else"`)
		w.Header().Add("Warning", `299 - "unknown field \"a\""`)
		_, _ = io.WriteString(w, `{}`)
	}, func(c *Config) {
		c.OnWarning = func(_ context.Context, r *wire.Request, text string) { texts = append(texts, string(r.Verb)+": "+text) }
	})
	if _, err := Get[corev1.Pod](t.Context(), c, "ns", "p"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"get: v1beta1 is deprecated", `get: unknown field "a"`}, texts); diff != "" {
		t.Error(diff)
	}
}

// Bug: the texts of warnings were kept until the process ended.
func TestWarningsAreLoggedOnceAndBounded(t *testing.T) { //nolint:paralleltest // it sets the default logger
	var logged strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	defer slog.SetDefault(before)
	warn := warnOnce()
	for range 3 {
		warn(t.Context(), requestFor(wire.VerbGet), "text 0")
	}
	if n := strings.Count(logged.String(), "text 0"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	for i := range 4 * maxWarnings {
		warn(t.Context(), requestFor(wire.VerbGet), fmt.Sprintf("text %d", i))
	}
	warn(t.Context(), requestFor(wire.VerbGet), "text 0")
	if n := strings.Count(logged.String(), `"text 0"`); n != 2 {
		t.Errorf("logged %d times: it is still remembered after %d others", n, 4*maxWarnings)
	}
}

// Bug: over HTTP a request for another cluster went to the home cluster.
func TestRequestForAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("sent %s %s", r.Method, r.URL) })
	_, err := Get[corev1.Pod](t.Context(), c.InCluster("west"), "ns", "p")
	wantError(t, err, `for the cluster "west"`, "Client.With")
	if IsUnreachable(err) {
		t.Errorf("it is called unreachable: %v", err)
	}
	_, err = Apply(t.Context(), c.InCluster("west"), &corev1.Pod{ObjectMeta: named("ns", "p")})
	if wantError(t, err, "west"); IsUnknown(err) {
		t.Errorf("it may have been carried out: %v", err)
	}
}

// Bug: net/http turned a redirected write into a GET, whose answer looked like success.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, code := range []int{301, 302, 303, 307, 308} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Errorf("followed to %s", r.URL)
			}
			http.Redirect(w, r, "/elsewhere", code)
		})
		_, err := Apply(t.Context(), c, &corev1.Pod{ObjectMeta: named("ns", "p")})
		wantError(t, err, "redirects to /elsewhere", fmt.Sprint(code))
	}
}

// Promise 6: every request has a deadline.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	stall := func(header int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(header)
			_, _ = io.WriteString(w, body)
			_ = http.NewResponseController(w).Flush()
			never(t)(w, r)
		}
	}
	read := func(c *Client) error { _, err := Get[corev1.Pod](t.Context(), c, "ns", "p"); return err }
	write := func(c *Client) error {
		_, err := Everywhere[corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")})
		return err
	}
	watch := func(c *Client) error {
		for _, err := range Everywhere[corev1.Pod](c).Watch(t.Context(), "7") {
			return err
		}
		return nil
	}
	for _, test := range []struct {
		name    string
		server  http.HandlerFunc
		do      func(*Client) error
		unknown bool
	}{
		{"no answer to a read", never(t), read, false},
		{"no answer to a write", never(t), write, true},
		{"stalls in the body of a read", stall(200, `{"metadata":`), read, false},
		{"stalls in the body of a write", stall(201, `{"metadata":`), write, true},
		{"a watch that does not begin", never(t), watch, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			// On a busy machine the request of a write takes a while to reach the server.
			err := test.do(serve(t, test.server, withTimeout(time.Second)))
			wantError(t, err, "the server did not answer in time")
			if !IsUnreachable(err) || IsUnknown(err) != test.unknown {
				t.Errorf("IsUnreachable is %t, IsUnknown %t of %v", IsUnreachable(err), IsUnknown(err), err)
			}
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Error("it looks as if the caller had given up")
			}
		})
	}
}

// Bug: the deadline was for the whole answer, so that a large page over a slow line failed for
// ever.
func TestSlowAnswerArrives(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for _, part := range []string{`{"items":[`, `{"metadata":`, `{"name":`, `"p"`, `}}`, `]}`} {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(200 * time.Millisecond)
		}
	}, withTimeout(time.Second))
	pods, err := Everywhere[corev1.Pod](c).List(t.Context())
	if err != nil || len(pods) != 1 {
		t.Errorf("%d Pods: %v", len(pods), err)
	}
}

// A watch goes on for longer than a request may take.
func TestWatchOutlivesTheTimeout(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 4 {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"metadata":{"name":"p%d"}}}`+"\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(60 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		}
	}, withTimeout(100*time.Millisecond))
	n := 0
	for event, err := range Everywhere[corev1.Pod](c).Watch(t.Context(), "7") {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("p%d", n); event.Type != "ADDED" || event.Object.Name != want {
			t.Errorf("event %d is %+v", n, event)
		}
		n++
	}
	if n != 4 {
		t.Errorf("saw %d events, want 4", n)
	}
}

// The transport finds a dead connection by pings over HTTP/2, and not at all over HTTP/1.1. Package watch
// waits for a shorter time on a connection without pings.
func TestWatchSaysWhetherItsConnectionIsPinged(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{true, false} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
		server.EnableHTTP2 = http2
		server.StartTLS()
		t.Cleanup(server.Close)
		c := clientOf(t, &Config{Host: server.URL, CAData: testcert.PEM(server.Certificate())})
		streams, err := Everywhere[corev1.Pod](c).Streams()
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Do(t.Context(), streams[0].Request(wire.VerbWatch))
		if err != nil {
			t.Fatal(err)
		}
		response.BodyReader.Close()
		if response.Pings != http2 {
			t.Errorf("HTTP/2 %t, pings %t", http2, response.Pings)
		}
	}
}

// One client reuses its connection, over HTTP/2 too.
func TestConnectionIsReused(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	opened := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("it is %s", r.Proto)
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			mu.Lock()
			defer mu.Unlock()
			opened++
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c := clientOf(t, &Config{Host: server.URL, CAData: testcert.PEM(server.Certificate())})
	for range 10 {
		if _, err := Get[corev1.Pod](t.Context(), c, "ns", "p"); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if opened != 1 {
		t.Errorf("opened %d connections", opened)
	}
}

// A server that is not trusted is an error at once.
func TestUnknownCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(never(t))
	server.Config.ErrorLog = discardLog()
	server.StartTLS()
	t.Cleanup(server.Close)
	_, err := Get[corev1.Pod](t.Context(), clientOf(t, &Config{Host: server.URL}), "ns", "p")
	wantError(t, err, "certificate")
}
