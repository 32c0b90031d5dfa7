package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

const notFoundBody = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"p\" not found","reason":"NotFound","details":{"name":"p","kind":"pods"},"code":404}`

func TestErrorPredicates(t *testing.T) {
	t.Parallel()
	status := func(code int, reason metav1.StatusReason, message, more string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d%s}`, message, reason, code, more)
	}
	is := map[string]func(error) bool{
		"NotFound": IsNotFound, "NoResource": IsNoResource, "AlreadyExists": IsAlreadyExists, "Conflict": IsConflict,
		"ApplyConflict": IsApplyConflict, "Invalid": IsInvalid, "BadRequest": hasReason(metav1.StatusReasonBadRequest), "Forbidden": IsForbidden,
		"Unauthorized": hasReason(metav1.StatusReasonUnauthorized), "Gone": hasReason(metav1.StatusReasonGone), "TooManyRequests": IsTooManyRequests, "Unknown": IsUnknown,
		"Unreachable": IsUnreachable,
		// Users of apimachinery call these functions.
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
		{"no resource", 404, "text/plain; charset=utf-8", "404 page not found\n",
			"the server does not serve this resource in version v1; is its CustomResourceDefinition applied? 404 page not found (HTTP 404)", []string{"NoResource", "api NotFound"}},
		{"no resource, as a Status", 404, "application/json", status(404, "NotFound", "the server could not find the requested resource", `,"details":{}`),
			"the server could not find", []string{"NoResource", "api NotFound"}},
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
		w.Header().Set("Content-Type", wire.ContentJSON)
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","reason":"Forbidden","message":"no"}`)
	})
	ctx := t.Context()
	for want, do := range map[string]func() error{
		`get deployments.apps "ns/d": no (Forbidden)`: func() error { _, err := Get[appsv1.Deployment](ctx, c, "ns", "d"); return err },
		`get nodes "n": no (Forbidden)`:               func() error { _, err := Get[corev1.Node](ctx, c, "", "n"); return err },
		`list pods in namespace "ns": no (Forbidden)`: func() error { _, err := Namespaced[corev1.Pod](c, "ns").List(ctx); return err },
		`list pods: no (Forbidden)`:                   func() error { _, err := Everywhere[corev1.Pod](c).List(ctx); return err },
		`create gadgets.example.com "ns/g": no (Forbidden)`: func() error {
			_, err := Everywhere[gadget](c).Create(ctx, &gadget{ObjectMeta: named("ns", "g")})
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
				w.Header().Set("Content-Type", wire.ContentJSON)
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

// Promise 9: over a refused connection nothing was carried out, so that even a create is
// repeated. Over a connection that broke, the request may have been carried out.
func TestFateOfWrites(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		dials := 0
		c := clientOf(t, &Config{Host: "http://203.0.113.1", Dial: func(context.Context, string, string) (net.Conn, error) {
			dials++
			return nil, errors.New("connection refused")
		}})
		_, err := Everywhere[corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")})
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
		_, err := Everywhere[corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")})
		if !IsUnknown(err) || len(requests) != 1 {
			t.Errorf("after %d requests the error is %v", len(requests), err)
		}
	})
	// An API server answers so while it ends, and while the definition of the kind changes.
	t.Run("not begun by the server", func(t *testing.T) {
		t.Parallel()
		requests := make(chan bool, 9)
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			requests <- true
			w.Header().Set("Content-Type", wire.ContentJSON)
			if len(requests) == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, `{"kind":"Status","status":"Failure","message":"apiserver is shutting down","reason":"ServiceUnavailable","code":503}`)
				return
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`)
		})
		_, err := Everywhere[corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")})
		if err != nil || len(requests) != 2 {
			t.Errorf("after %d requests the error is %v", len(requests), err)
		}
	})
	t.Run("503 of a proxy", func(t *testing.T) {
		t.Parallel()
		requests := make(chan bool, 9)
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			requests <- true
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "upstream connect error or disconnect/reset before headers")
		})
		_, err := Everywhere[corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")})
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
		_, err := Everywhere[corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")})
		if !IsUnknown(err) || len(requests) != 1 {
			t.Errorf("after %d requests the error is %v", len(requests), err)
		}
	})
}
