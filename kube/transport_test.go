package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// serve is a client of a server over HTTP.
func serve(t *testing.T, h http.HandlerFunc, options ...ClientOption) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return clientOf(t, &rest.Config{Host: server.URL}, options...)
}

func clientOf(t *testing.T, config *rest.Config, options ...ClientOption) *Client {
	t.Helper()
	c, err := NewClient(config, options...)
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
	deployments := Resource{Plural: "deployments"}
	deployments.Group, deployments.Version, deployments.Kind = "apps", "v1", "Deployment"
	nodes := Resource{Plural: "nodes", Cluster: true}
	nodes.Version, nodes.Kind = "v1", "Node"
	pods := Resource{Plural: "pods"}
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
		r      Request
		want   string
	}{
		{"", Request{Verb: VerbGet, Resource: pods, Namespace: "ns", Name: "p"}, "GET /api/v1/namespaces/ns/pods/p"},
		{"", Request{Verb: VerbList, Resource: pods}, "GET /api/v1/pods"},
		{"", Request{Verb: VerbList, Resource: pods, Namespace: "ns", Query: url.Values{"labelSelector": {"a in (b,c)"}}}, "GET /api/v1/namespaces/ns/pods?labelSelector=a+in+%28b%2Cc%29"},
		{"", Request{Verb: VerbWatch, Resource: pods, Query: url.Values{"resourceVersion": {"7"}}}, "GET /api/v1/pods?resourceVersion=7&watch=true"},
		{"", Request{Verb: VerbCreate, Resource: deployments, Namespace: "ns"}, "POST /apis/apps/v1/namespaces/ns/deployments"},
		{"", Request{Verb: VerbCreate, Resource: pods, Namespace: "ns", Name: "p", Subresource: "eviction"}, "POST /api/v1/namespaces/ns/pods/p/eviction"},
		{"", Request{Verb: VerbUpdate, Resource: nodes, Name: "n", Subresource: "status"}, "PUT /api/v1/nodes/n/status"},
		{"", Request{Verb: VerbPatch, Resource: deployments, Namespace: "ns", Name: "d", Subresource: "scale"}, "PATCH /apis/apps/v1/namespaces/ns/deployments/d/scale"},
		{"", Request{Verb: VerbDelete, Resource: nodes, Name: "n"}, "DELETE /api/v1/nodes/n"},
		{"", Request{Verb: VerbDeleteCollection, Resource: pods, Namespace: "ns"}, "DELETE /api/v1/namespaces/ns/pods"},
		{"/k8s/clusters/c-1", Request{Verb: VerbGet, Resource: nodes, Name: "n"}, "GET /k8s/clusters/c-1/api/v1/nodes/n"},
		{"/prefix/", Request{Verb: VerbGet, Resource: nodes, Name: "n"}, "GET /prefix/api/v1/nodes/n"},
		{"", Request{Verb: VerbGet, Resource: nodes, Name: "system:a b?c#d"}, "GET /api/v1/nodes/system:a%20b%3Fc%23d"},
	} {
		c := clientOf(t, &rest.Config{Host: server.URL + test.prefix})
		response, err := c.Do(t.Context(), &test.r)
		if err != nil {
			t.Errorf("%s: %v", test.want, err)
			continue
		}
		if response.Stream != nil {
			_ = response.Stream.Close()
		}
		mu.Lock()
		if got != test.want {
			t.Errorf("asked for %s, want %s", got, test.want)
		}
		mu.Unlock()
	}
}

// Bug: the object "p/status" was another one than its name said.
func TestNameCannotLeadElsewhere(t *testing.T) {
	t.Parallel()
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	for _, name := range []string{"p/status", "..", ".", "a%2fb"} {
		_, err := Get[corev1.Pod](t.Context(), c, "ns", name)
		wantError(t, err, fmt.Sprintf("%q may not", name))
		_, err = Get[corev1.Pod](t.Context(), c, name, "p")
		wantError(t, err, fmt.Sprintf("%q may not", name))
		_, err = c.Do(t.Context(), &Request{Verb: VerbGet, Resource: podResource, Namespace: "ns", Name: name})
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
		{"get", func() error { _, err := Get[corev1.Pod](ctx, c, "ns", "p"); return err }, ContentJSON, ""},
		{"get metadata", func() error { _, err := Metadata(c, gadgets, "ns").Get(ctx, "g"); return err }, metadata, ""},
		{"list metadata", func() error { _, err := Metadata(c, gadgets, "").List(ctx); return err }, metadataList, ""},
		{"watch metadata", func() error {
			for range Metadata(c, gadgets, "").Watch(ctx, "7") {
				break
			}
			return nil
		}, metadata, ""},
		{"create", func() error {
			_, err := All[corev1.Pod](c).Create(ctx, &corev1.Pod{ObjectMeta: named("ns", "p")})
			return err
		}, ContentJSON, ContentJSON},
		{"apply", func() error { _, err := Apply(ctx, c, &corev1.Pod{ObjectMeta: named("ns", "p")}); return err }, ContentJSON, ContentApply},
		{"merge", func() error {
			_, err := Namespaced[corev1.Pod](c, "ns").Patch(ctx, "p", MergePatch(map[string]any{}))
			return err
		}, ContentJSON, ContentMergePatch},
		{"JSON patch", func() error {
			_, err := Namespaced[corev1.Pod](c, "ns").Patch(ctx, "p", JSONPatch(RemoveAt("/a")))
			return err
		}, ContentJSON, ContentJSONPatch},
		{"strategic", func() error {
			_, err := Namespaced[corev1.Pod](c, "ns").Patch(ctx, "p", StrategicPatch(map[string]any{}))
			return err
		}, ContentJSON, ContentStrategicPatch},
		{"delete", func() error { return Namespaced[corev1.Pod](c, "ns").Delete(ctx, "p", OfUID("u")) }, ContentJSON, ContentJSON},
		{"delete without options", func() error { return Namespaced[corev1.Pod](c, "ns").Delete(ctx, "p") }, ContentJSON, ""},
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
	c := clientOf(t, &rest.Config{Host: server.URL, UserAgent: "mine/1"})
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
	}, OnWarning(func(r *Request, text string) { texts = append(texts, string(r.Verb)+": "+text) }))
	if _, err := Get[corev1.Pod](t.Context(), c, "ns", "p"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"get: v1beta1 is deprecated", `get: unknown field "a"`}, texts); diff != "" {
		t.Error(diff)
	}
}

const notFoundBody = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"p\" not found","reason":"NotFound","details":{"name":"p","kind":"pods"},"code":404}`

func TestErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	status := func(code int, reason metav1.StatusReason, message, more string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d%s}`, message, reason, code, more)
	}
	is := map[string]func(error) bool{
		"NotFound": IsNotFound, "NoResource": IsNoResource, "AlreadyExists": IsAlreadyExists, "Conflict": IsConflict,
		"ApplyConflict": IsApplyConflict, "Invalid": IsInvalid, "BadRequest": IsBadRequest, "Forbidden": IsForbidden,
		"Unauthorized": IsUnauthorized, "Gone": IsGone, "TooManyRequests": IsTooManyRequests, "Unknown": IsUnknown,
		"Unreachable": IsUnreachable,
		// They are asked of by people who come from there.
		"api NotFound": apierrors.IsNotFound, "api AlreadyExists": apierrors.IsAlreadyExists, "api Conflict": apierrors.IsConflict,
		"api Invalid": apierrors.IsInvalid, "api Forbidden": apierrors.IsForbidden, "api Unauthorized": apierrors.IsUnauthorized,
		"api TooManyRequests": apierrors.IsTooManyRequests, "api Gone": apierrors.IsResourceExpired,
	}
	for _, test := range []struct {
		name    string
		code    int
		content string
		body    string
		text    string
		want    []string
	}{
		{"not found", 404, "application/json", notFoundBody, `pods "p" not found (NotFound)`, []string{"NotFound", "api NotFound"}},
		{"no resource", 404, "text/plain; charset=utf-8", "404 page not found\n", "404 page not found (HTTP 404)", []string{"NotFound", "NoResource", "api NotFound"}},
		{"no resource, as a Status", 404, "application/json", status(404, "NotFound", "the server could not find the requested resource", `,"details":{}`),
			"the server could not find", []string{"NotFound", "NoResource", "api NotFound"}},
		{"exists", 409, "application/json", status(409, "AlreadyExists", "exists", ""), "exists (AlreadyExists)", []string{"AlreadyExists", "api AlreadyExists"}},
		{"conflict", 409, "application/json; charset=utf-8", status(409, "Conflict", "modified", ""), "modified (Conflict)", []string{"Conflict", "api Conflict"}},
		{"apply conflict", 409, "application/json", status(409, "Conflict", "owned", `,"details":{"causes":[{"reason":"FieldManagerConflict","message":"by m","field":".spec"}]}`),
			"owned", []string{"Conflict", "ApplyConflict", "api Conflict"}},
		{"invalid", 422, "application/json", status(422, "Invalid", "bad", ""), "bad (Invalid)", []string{"Invalid", "api Invalid"}},
		{"bad request", 400, "application/json", status(400, "BadRequest", "what", ""), "what (BadRequest)", []string{"BadRequest"}},
		{"forbidden", 403, "application/json", status(403, "Forbidden", "no", ""), "no (Forbidden)", []string{"Forbidden", "api Forbidden"}},
		{"unauthorized", 401, "application/json", status(401, "Unauthorized", "who", ""), "who (Unauthorized)", []string{"Unauthorized", "api Unauthorized"}},
		{"expired", 410, "application/json", status(410, "Expired", "too old", ""), "too old (Expired)", []string{"Gone", "api Gone"}},
		{"gone", 410, "application/json", status(410, "Gone", "too old", ""), "too old (Gone)", []string{"Gone"}},
		{"no message", 403, "application/json", status(403, "Forbidden", "", ""), "Forbidden (Forbidden)", []string{"Forbidden", "api Forbidden"}},
		{"no code", 403, "application/json", status(0, "", "no", ""), "no (HTTP 403)", []string{"Forbidden", "api Forbidden"}},
		{"proxy", 502, "text/html", "<html>\n<h1>Bad\tGateway</h1></html>", "<html> <h1>Bad Gateway</h1></html> (HTTP 502); it may have been carried out all the same", []string{"Unknown"}},
		{"proxy without a word", 504, "", "", "Gateway Timeout (HTTP 504)", []string{"Unknown"}},
		{"not what it says", 500, "application/json", "{oops", "{oops (HTTP 500)", []string{"Unknown"}},
		{"another kind", 403, "application/json", `{"kind":"Pod"}`, "(HTTP 403)", []string{"Forbidden", "api Forbidden"}},
		{"not implemented", 501, "", "", "Not Implemented (HTTP 501)", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.content)
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.body)
			})
			// A merge patch, because it is not repeated.
			_, err := Namespaced[corev1.Pod](c, "ns").Status().Patch(t.Context(), "p", MergePatch(map[string]any{}))
			wantError(t, err, `patch pods/status "ns/p": `, test.text)
			want := make(map[string]bool)
			for _, name := range test.want {
				want[name] = true
			}
			for name, f := range is {
				if f(err) != want[name] {
					t.Errorf("Is%s says %t of %v", name, !want[name], err)
				}
				if f(fmt.Errorf("wrapped: %w", err)) != want[name] {
					t.Errorf("Is%s says %t of it wrapped", name, !want[name])
				}
				if f(nil) || f(errors.New("another")) {
					t.Errorf("Is%s says yes to what is no answer", name)
				}
			}
		})
	}
}

func TestErrorsNameWhatWasDone(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ContentJSON)
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","reason":"Forbidden","message":"no"}`)
	})
	ctx := t.Context()
	for want, do := range map[string]func() error{
		`get deployments.apps "ns/d": no (Forbidden)`: func() error { _, err := Get[appsv1.Deployment](ctx, c, "ns", "d"); return err },
		`get nodes "n": no (Forbidden)`:               func() error { _, err := Get[corev1.Node](ctx, c, "", "n"); return err },
		`list pods in namespace "ns": no (Forbidden)`: func() error { _, err := Namespaced[corev1.Pod](c, "ns").List(ctx); return err },
		`list pods: no (Forbidden)`:                   func() error { _, err := All[corev1.Pod](c).List(ctx); return err },
		`create gadgets.example.com "ns/g": no (Forbidden)`: func() error {
			_, err := All[gadget](c).Create(ctx, &gadget{ObjectMeta: named("ns", "g")})
			return err
		},
		`get deployments.apps/scale "ns/d": no (Forbidden)`: func() error {
			_, err := Namespaced[appsv1.Deployment](c, "ns").GetScale(ctx, "d")
			return err
		},
	} {
		if err := do(); err == nil || err.Error() != want {
			t.Errorf("the error is\n%v, want\n%s", err, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, header, body string
		least, most        time.Duration
	}{
		{"header", "7", "", 7 * time.Second, 7 * time.Second},
		{"details", "", `{"kind":"Status","details":{"retryAfterSeconds":9}}`, 9 * time.Second, 9 * time.Second},
		{"both", "7", `{"kind":"Status","details":{"retryAfterSeconds":9}}`, 7 * time.Second, 7 * time.Second},
		{"date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), "", time.Minute, time.Hour},
		{"past date", "Mon, 02 Jan 2006 15:04:05 GMT", "", 0, 0},
		{"nonsense", "soon", "", 0, 0},
		{"negative", "-3", "", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", test.header)
				w.Header().Set("Content-Type", ContentJSON)
				w.WriteHeader(http.StatusConflict) // is not repeated
				_, _ = io.WriteString(w, test.body)
			})
			_, err := Get[corev1.Pod](t.Context(), c, "ns", "p")
			if e, ok := AsError(err); !ok || e.RetryAfter < test.least || e.RetryAfter > test.most {
				t.Errorf("the error is %#v", err)
			}
		})
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
		_, err := All[corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")})
		return err
	}
	watch := func(c *Client) error {
		for _, err := range All[corev1.Pod](c).Watch(t.Context(), "7") {
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
			err := test.do(serve(t, test.server, Timeout(50*time.Millisecond)))
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
	}, Timeout(100*time.Millisecond))
	n := 0
	for event, err := range All[corev1.Pod](c).Watch(t.Context(), "7") {
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

// The caller's own end is the context's error, whatever its cause.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cause, want error
	}{
		"plain":  {nil, context.Canceled},
		"reason": {errors.New("shutting down"), context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				cancel(test.cause)
				never(t)(w, r)
			})
			_, err := Get[corev1.Pod](ctx, c, "ns", "p")
			if !errors.Is(err, test.want) || test.cause != nil && !errors.Is(err, test.cause) {
				t.Errorf("the error is %v", err)
			}
			if IsUnreachable(err) {
				t.Error("nobody waited, so nobody knows that it is unreachable")
			}
		})
	}
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := Get[corev1.Pod](ctx, serve(t, never(t)), "ns", "p")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
}

// Promise 9: a connection that was refused carried nothing out, so that even a create is
// repeated; one that broke may have.
func TestFateOfWrites(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		dials := 0
		c := clientOf(t, &rest.Config{Host: "http://203.0.113.1", Dial: func(context.Context, string, string) (net.Conn, error) {
			dials++
			return nil, errors.New("connection refused")
		}})
		_, err := All[corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")})
		wantError(t, err, `create pods "ns/p": `, "connection refused")
		if IsUnknown(err) || !IsUnreachable(err) || dials != retryAttempts {
			t.Errorf("IsUnknown is %t, IsUnreachable %t after %d dials", IsUnknown(err), IsUnreachable(err), dials)
		}
	})
	t.Run("broken", func(t *testing.T) {
		t.Parallel()
		requests := make(chan bool, 9)
		c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			requests <- true
			panic(http.ErrAbortHandler)
		})
		_, err := All[corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")})
		if !IsUnknown(err) || len(requests) != 1 {
			t.Errorf("after %d requests the error is %v", len(requests), err)
		}
	})
	t.Run("broken in the answer", func(t *testing.T) {
		t.Parallel()
		requests := make(chan bool, 9)
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			requests <- true
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"metadata":`)
		})
		_, err := All[corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")})
		if !IsUnknown(err) || len(requests) != 1 {
			t.Errorf("after %d requests the error is %v", len(requests), err)
		}
	})
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
	c := clientOf(t, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificatePEM(server.Certificate())}})
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

// A server that is not trusted is told at once.
func TestUnknownCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(never(t))
	server.Config.ErrorLog = discardLog()
	server.StartTLS()
	t.Cleanup(server.Close)
	_, err := Get[corev1.Pod](t.Context(), clientOf(t, &rest.Config{Host: server.URL}), "ns", "p")
	wantError(t, err, "certificate")
}
