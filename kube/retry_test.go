package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

var (
	podResource    = wire.Resource{GroupVersionKind: metav1.SchemeGroupVersion.WithKind("Pod"), Plural: "pods"}
	unavailable    = refuse(503, metav1.StatusReasonServiceUnavailable, "later")
	internal       = refuse(500, metav1.StatusReasonInternalError, "oops")
	said           = refuse(500, "", "the store is broken", withStatus)
	saidOtherwise  = refuse(500, "", "the store is closed", withStatus)
	saidLater      = refuse(500, "", "the store is broken", withStatus, func(e *wire.Error) { e.RetryAfter = time.Second })
	finalRefusal   = refuse(500, "", "etcdserver: request is too large", func(e *wire.Error) { e.Unknown = false })
	tooMany        = refuse(429, metav1.StatusReasonTooManyRequests, "slow down")
	notFound       = refuse(404, metav1.StatusReasonNotFound, `pods "p" not found`)
	versionChanged = refuse(409, metav1.StatusReasonConflict, "the object has been modified")
	uidChanged     = refuse(409, metav1.StatusReasonConflict, "the UID in the precondition (u) does not match the UID in record (v)")
	done           = answer(`{"kind":"Status","status":"Success"}`)
)

// withStatus makes an answer one of an API server.
func withStatus(e *wire.Error) { e.Answer.Kind = "Status" }

func noResource(_ context.Context, r *wire.Request) (*wire.Response, error) {
	e := wire.NewError(r)
	e.Code, e.Answer = 404, metav1.Status{Code: 404, Message: "404 page not found"}
	return nil, e
}

func requestFor(verb wire.Verb, change ...func(*wire.Request)) *wire.Request {
	r := &wire.Request{Verb: verb, Resource: podResource, Namespace: "ns", Name: "p"}
	for _, f := range change {
		f(r)
	}
	return r
}

func withUID(r *wire.Request)     { r.Preconditions.UID = "u" }
func withVersion(r *wire.Request) { r.Preconditions.ResourceVersion = "7" }
func withBody(body string) func(*wire.Request) {
	return func(r *wire.Request) { r.Body = []byte(body) }
}
func withContent(content string) func(*wire.Request) {
	return func(r *wire.Request) { r.ContentType = content }
}

const (
	isOK = iota
	isKnown
	isUnknown
)

// Promise 9: what is repeated, and what its outcome is. The script fails the test if a step is
// missing, or if there is one too many.
func TestRetry(t *testing.T) {
	t.Parallel()
	const wanted = `{"metadata":{"name":"p","resourceVersion":"7"},"spec":{"n":1},"status":{}}`
	same := answer(`{"metadata":{"name":"p","resourceVersion":"8","generation":2,"managedFields":[{}]},"spec":{"n":1}}`)
	other := answer(`{"metadata":{"name":"p","resourceVersion":"8"},"spec":{"n":2}}`)
	const lastWord = `{"metadata":{"name":"p","resourceVersion":"7","deletionTimestamp":"2026-01-02T03:04:05Z"}}`
	terminating := answer(`{"metadata":{"name":"p","uid":"u","deletionTimestamp":"2026-01-02T03:04:05Z"}}`)
	staying := answer(`{"metadata":{"name":"p","uid":"u"}}`)
	evict := func(r *wire.Request) { r.Subresource = "eviction" }

	for _, test := range []struct {
		name  string
		r     *wire.Request
		steps []wire.HandlerFunc
		want  int
	}{
		{"read, 429", requestFor(wire.VerbGet), []wire.HandlerFunc{tooMany, done}, isOK},
		{"read, 500", requestFor(wire.VerbGet), []wire.HandlerFunc{internal, done}, isOK},
		{"list, broken", requestFor(wire.VerbList), []wire.HandlerFunc{breakConnection(true), unavailable, breakConnection(false), tooMany, done}, isOK},
		{"read, five times and no more", requestFor(wire.VerbGet), []wire.HandlerFunc{internal, internal, internal, internal, internal}, isKnown},
		{"read, 500 twice in the same words", requestFor(wire.VerbGet), []wire.HandlerFunc{said, said}, isKnown},
		{"read, 500 in other words", requestFor(wire.VerbGet), []wire.HandlerFunc{said, saidOtherwise, said, unavailable, said}, isKnown},
		{"read, 500 that asks for a repetition", requestFor(wire.VerbGet), []wire.HandlerFunc{said, saidLater, done}, isOK},
		{"read, 404", requestFor(wire.VerbGet), []wire.HandlerFunc{notFound}, isKnown},
		{"read, 501", requestFor(wire.VerbGet), []wire.HandlerFunc{refuse(501, "", "no")}, isKnown},
		{"watch is not repeated", requestFor(wire.VerbWatch), []wire.HandlerFunc{internal}, isKnown},

		{"create, 429", requestFor(wire.VerbCreate), []wire.HandlerFunc{tooMany, done}, isOK},
		{"create, refused connection", requestFor(wire.VerbCreate), []wire.HandlerFunc{breakConnection(false), done}, isOK},
		{"create, broken", requestFor(wire.VerbCreate), []wire.HandlerFunc{breakConnection(true)}, isUnknown},
		{"create, 500", requestFor(wire.VerbCreate), []wire.HandlerFunc{internal}, isUnknown},
		{"create, 504", requestFor(wire.VerbCreate), []wire.HandlerFunc{refuse(504, metav1.StatusReasonTimeout, "timeout")}, isUnknown},
		{"create, exists", requestFor(wire.VerbCreate), []wire.HandlerFunc{refuse(409, metav1.StatusReasonAlreadyExists, "exists")}, isKnown},
		{"create, 429 and then broken", requestFor(wire.VerbCreate), []wire.HandlerFunc{tooMany, breakConnection(true)}, isUnknown},

		{"replace, broken", requestFor(wire.VerbUpdate, withVersion, withBody(wanted)), []wire.HandlerFunc{breakConnection(true), done}, isOK},
		{"replace, own success", requestFor(wire.VerbUpdate, withVersion, withBody(wanted)), []wire.HandlerFunc{breakConnection(true), versionChanged, same}, isOK},
		{"replace, own success after 429", requestFor(wire.VerbUpdate, withVersion, withBody(wanted)), []wire.HandlerFunc{internal, tooMany, versionChanged, same}, isOK},
		{"replace, another's success", requestFor(wire.VerbUpdate, withVersion, withBody(wanted)), []wire.HandlerFunc{breakConnection(true), versionChanged, other}, isUnknown},
		{"replace, gone", requestFor(wire.VerbUpdate, withVersion, withBody(wanted)), []wire.HandlerFunc{breakConnection(true), notFound}, isUnknown},
		{"replace, last finalizer gone", requestFor(wire.VerbUpdate, withVersion, withBody(lastWord)), []wire.HandlerFunc{breakConnection(true), notFound}, isOK},
		{"replace, conflict at once", requestFor(wire.VerbUpdate, withVersion, withBody(wanted)), []wire.HandlerFunc{versionChanged}, isKnown},
		{"replace, conflict after 429", requestFor(wire.VerbUpdate, withVersion, withBody(wanted)), []wire.HandlerFunc{tooMany, versionChanged}, isKnown},
		{"replace without version, broken", requestFor(wire.VerbUpdate, withBody(wanted)), []wire.HandlerFunc{breakConnection(true)}, isUnknown},
		{"replace without version, 429", requestFor(wire.VerbUpdate, withBody(wanted)), []wire.HandlerFunc{tooMany, done}, isOK},

		{"delete of a uid, broken", requestFor(wire.VerbDelete, withUID), []wire.HandlerFunc{breakConnection(true), done}, isOK},
		{"delete of a uid, gone", requestFor(wire.VerbDelete, withUID), []wire.HandlerFunc{breakConnection(true), notFound}, isOK},
		{"delete of a uid, another is there", requestFor(wire.VerbDelete, withUID), []wire.HandlerFunc{internal, uidChanged}, isOK},
		{"delete of a uid, gone at once", requestFor(wire.VerbDelete, withUID), []wire.HandlerFunc{notFound}, isKnown},
		{"delete of a uid, another at once", requestFor(wire.VerbDelete, withUID), []wire.HandlerFunc{uidChanged}, isKnown},
		{"delete of a uid, resource unknown", requestFor(wire.VerbDelete, withUID), []wire.HandlerFunc{breakConnection(true), noResource}, isUnknown},
		{"delete of a uid, terminating", requestFor(wire.VerbDelete, withUID), []wire.HandlerFunc{breakConnection(true), versionChanged, terminating}, isOK},
		{"delete of a uid, conflict", requestFor(wire.VerbDelete, withUID), []wire.HandlerFunc{breakConnection(true), versionChanged, staying}, isUnknown},
		{"delete of a version, conflict", requestFor(wire.VerbDelete, withUID, withVersion), []wire.HandlerFunc{breakConnection(true), versionChanged}, isUnknown},
		{"delete by name, broken", requestFor(wire.VerbDelete), []wire.HandlerFunc{breakConnection(true)}, isUnknown},
		{"delete by name, 429", requestFor(wire.VerbDelete), []wire.HandlerFunc{tooMany, done}, isOK},
		{"delete collection, broken", requestFor(wire.VerbDeleteCollection), []wire.HandlerFunc{breakConnection(true)}, isUnknown},

		{"apply, broken", requestFor(wire.VerbPatch, withContent(wire.ContentApply)), []wire.HandlerFunc{breakConnection(true), internal, done}, isOK},
		{"apply, refused in the end", requestFor(wire.VerbPatch, withContent(wire.ContentApply)), []wire.HandlerFunc{breakConnection(true), refuse(422, metav1.StatusReasonInvalid, "bad")}, isUnknown},
		{"apply, always broken", requestFor(wire.VerbPatch, withContent(wire.ContentApply)), []wire.HandlerFunc{breakConnection(true), breakConnection(false), breakConnection(false), breakConnection(false), breakConnection(false)}, isUnknown},
		{"apply, 500 twice in the same words", requestFor(wire.VerbPatch, withContent(wire.ContentApply)), []wire.HandlerFunc{said, said}, isUnknown},
		{"apply, refused for good", requestFor(wire.VerbPatch, withContent(wire.ContentApply)), []wire.HandlerFunc{finalRefusal}, isKnown},
		{"apply, broken and then refused for good", requestFor(wire.VerbPatch, withContent(wire.ContentApply)), []wire.HandlerFunc{breakConnection(true), finalRefusal}, isUnknown},
		{"merge patch, broken", requestFor(wire.VerbPatch, withContent(wire.ContentMergePatch)), []wire.HandlerFunc{breakConnection(true)}, isUnknown},
		{"merge patch, 429", requestFor(wire.VerbPatch, withContent(wire.ContentMergePatch)), []wire.HandlerFunc{tooMany, done}, isOK},
		{"JSON patch, 500", requestFor(wire.VerbPatch, withContent(wire.ContentJSONPatch)), []wire.HandlerFunc{internal}, isUnknown},
		{"strategic patch, broken", requestFor(wire.VerbPatch, withContent(wire.ContentStrategicPatch)), []wire.HandlerFunc{breakConnection(true)}, isUnknown},

		{"eviction, disruption budget", requestFor(wire.VerbCreate, evict), []wire.HandlerFunc{tooMany}, isKnown},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, err := retry{next: scripted(t, test.steps...), timeout: time.Minute}.Do(t.Context(), test.r)
				if (err == nil) != (test.want == isOK) {
					t.Fatalf("the error is %v", err)
				}
				if got := IsUnknown(err); got != (test.want == isUnknown) {
					t.Errorf("IsUnknown(%v) = %t", err, got)
				}
			})
		})
	}
}

// Bug: what cannot be asked at all was asked five times.
func TestNoRetryOfPermanentErrors(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*wire.Error){
		"bad request": func(e *wire.Error) { e.Code, e.Err, e.Permanent = 0, errors.New("bad"), true },
		"certificate": func(e *wire.Error) {
			e.Code, e.Err = 0, &tls.CertificateVerificationError{Err: errors.New("unknown authority")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := retry{next: scripted(t, refuse(0, "", "", change)), timeout: time.Minute}.Do(t.Context(), requestFor(wire.VerbGet))
			if err == nil {
				t.Error("there is no error")
			}
		})
	}
}

func TestRetryHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var waited time.Duration
		start := time.Now()
		h := retry{timeout: time.Minute, next: scripted(t,
			refuse(429, metav1.StatusReasonTooManyRequests, "slow", func(e *wire.Error) { e.RetryAfter = 20 * time.Second }),
			func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
				waited = time.Since(start)
				return done(ctx, r)
			})}
		if _, err := h.Do(t.Context(), requestFor(wire.VerbCreate)); err != nil {
			t.Fatal(err)
		}
		if waited < 20*time.Second {
			t.Errorf("repeated after %s, although the server asked for 20s", waited)
		}
	})
}

// Bug: a Retry-After was believed however long it was.
func TestRetryDelayIsBounded(t *testing.T) {
	t.Parallel()
	for asked, want := range map[time.Duration]time.Duration{
		-time.Second: 0, 0: 0, time.Second: time.Second, 240 * time.Hour: time.Minute,
	} {
		if got := (&wire.Error{RetryAfter: asked}).RetryDelay(); got != want {
			t.Errorf("RetryDelay of %s is %s, want %s", asked, got, want)
		}
	}
}

// A wait that goes beyond the limit, or beyond the caller's own deadline, is not begun.
func TestRetryAfterBeyondTheLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ limit, deadline time.Duration }{
		"limit":    {limit: 5 * time.Second, deadline: time.Hour},
		"deadline": {limit: time.Hour, deadline: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
				defer cancel()
				start := time.Now()
				_, err := retry{timeout: test.limit, next: scripted(t,
					refuse(429, metav1.StatusReasonTooManyRequests, "slow", func(e *wire.Error) { e.RetryAfter = 10 * time.Second }),
				)}.Do(ctx, requestFor(wire.VerbGet))
				if !IsTooManyRequests(err) {
					t.Errorf("the error is %v", err)
				}
				if waited := time.Since(start); waited != 0 {
					t.Errorf("waited %s for nothing", waited)
				}
			})
		})
	}
}

// Bug: the limit was checked between attempts only, so that the last one could go on for
// as long again.
func TestRetryLimitIsForAllAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		slow := func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			select {
			case <-time.After(20 * time.Second):
				return unavailable(ctx, r)
			case <-ctx.Done():
				e := wire.NewError(r)
				e.Err = context.Cause(ctx)
				return nil, e
			}
		}
		_, err := retry{timeout: 30 * time.Second, next: scripted(t, slow, slow)}.Do(t.Context(), requestFor(wire.VerbGet))
		if !errors.Is(err, errNoAnswer) || !IsUnreachable(err) {
			t.Errorf("the error is %v", err)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("took %s, the limit is 30s", took)
		}
	})
}

func TestRetryEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("shutting down")
		time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
		_, err := retry{timeout: time.Minute, next: scripted(t, unavailable)}.Do(ctx, requestFor(wire.VerbGet))
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("the error is %v", err)
		}
		wantError(t, err, `get pods.meta.k8s.io "ns/p"`, "later")
		if IsUnreachable(err) {
			t.Error("nobody waited for the server, so nobody knows that it is unreachable")
		}
	})
}

func TestRetryBacksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		note := func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			at = append(at, time.Now())
			return internal(ctx, r)
		}
		_, err := retry{timeout: time.Minute, next: scripted(t, note, note, note, note, note)}.Do(t.Context(), requestFor(wire.VerbGet))
		if e, ok := AsError(err); !ok || e.Code != http.StatusInternalServerError {
			t.Fatalf("the error is %v", err)
		}
		for i, least := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
			if waited := at[i+1].Sub(at[i]); waited < least {
				t.Errorf("attempt %d came after %s", i+2, waited)
			}
		}
	})
}

// isSameObject reports false rather than a wrong true.
func TestSameObject(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, live, wanted string
		want               bool
	}{
		{"the same", `{"a":[1,{"b":"c"}]}`, `{"a":[1,{"b":"c"}]}`, true},
		{"null", `{}`, `{"a":null,"metadata":{"creationTimestamp":null}}`, false},
		{"null beside", `{"metadata":{"resourceVersion":"2"}}`, `{"a":null,"metadata":{"resourceVersion":"1","creationTimestamp":null}}`, true},
		{"untouched status", `{"spec":{}}`, `{"spec":{},"status":{}}`, true},
		{"other uid", `{"metadata":{"uid":"a"}}`, `{"metadata":{"uid":"b"}}`, false},
		{"a default", `{"a":1,"b":2}`, `{"a":1}`, false},
		{"selector of all, and none", `{"selector":{}}`, `{}`, false},
		{"shorter list", `{"a":[1]}`, `{"a":[1,2]}`, false},
		{"Bug: {} was the same as any scalar", `{"a":{}}`, `{"a":"b"}`, false},
		{"Bug: [] was the same as any scalar", `{"a":[]}`, `{"a":"b"}`, false},
		{"Bug: large numbers were compared as float64", `{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{"no object", `[]`, `[]`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := isSameObject([]byte(test.live), []byte(test.wanted)); got != test.want {
				t.Errorf("isSameObject(%s, %s) = %t", test.live, test.wanted, got)
			}
		})
	}
}
