package kube

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

type gadgetSpec struct {
	Size  int32             `json:"size"`
	Note  string            `json:"note,omitempty"`
	Parts map[string]string `json:"parts,omitempty"`
}

func (gadgetSpec) Definition() Definition {
	return Definition{Group: "example.com", Version: "v1", Kind: "Gadget"}
}

type gadgetStatus struct {
	Ready bool `json:"ready,omitempty"`
}

type gadget = CustomResource[gadgetSpec, gadgetStatus]

type planetSpec struct{}

func (planetSpec) Definition() Definition {
	return Definition{Group: "example.com", Version: "v1", Kind: "Planet", ClusterScoped: true}
}

type planet = CustomResource[planetSpec, None]

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// script is a Handler that answers one request after the other by its steps, and keeps the requests.
type script struct {
	t     *testing.T
	mu    sync.Mutex
	steps []wire.HandlerFunc
	got   []*wire.Request
}

func scripted(t *testing.T, steps ...wire.HandlerFunc) *script {
	s := &script{t: t, steps: steps}
	t.Cleanup(func() {
		if left := len(s.steps) - len(s.got); left > 0 {
			t.Errorf("%d requests were expected beyond %s", left, s)
		}
	})
	return s
}

func (s *script) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	s.mu.Lock()
	i := len(s.got)
	s.got = append(s.got, r)
	s.mu.Unlock()
	if i >= len(s.steps) {
		s.t.Errorf("request %d was not expected: %s %s", i+1, r.Verb, r.Ref())
		return nil, context.Canceled
	}
	return s.steps[i](ctx, r)
}

// String lists the requests so far.
func (s *script) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := make([]string, 0, len(s.got))
	for _, r := range s.got {
		lines = append(lines, fmt.Sprintf("%s %s/%s", r.Verb, r.Ref(), r.Subresource))
	}
	return strings.Join(lines, "\n")
}

func answer(body string) wire.HandlerFunc {
	return func(context.Context, *wire.Request) (*wire.Response, error) {
		return &wire.Response{Code: http.StatusOK, Body: []byte(body)}, nil
	}
}

// refuse answers as a server that sends a Status.
func refuse(code int, reason metav1.StatusReason, message string, change ...func(*wire.Error)) wire.HandlerFunc {
	return func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		e := wire.NewError(r)
		e.Code = code
		e.Answer = metav1.Status{
			Code: int32(code), Reason: reason, Message: message,
			Details: &metav1.StatusDetails{Name: r.Name, Kind: r.Resource.Plural},
		}
		e.Unknown = code >= 500 && r.Verb.IsWrite()
		for _, f := range change {
			f(e)
		}
		return nil, e
	}
}

// breakConnection answers nothing. isSent is true if the request may have arrived.
func breakConnection(isSent bool) wire.HandlerFunc {
	return func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		e := wire.NewError(r)
		e.Err = fmt.Errorf("the connection broke")
		e.Unknown = isSent && r.Verb.IsWrite()
		return nil, e
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("there is no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %q, want %q in it", err, part)
		}
	}
}

// hasReason returns a function that reports whether an error has the reason.
func hasReason(reason metav1.StatusReason) func(error) bool {
	return func(err error) bool { return HasReason(err, reason) }
}
