package kube_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

type spanKey struct{}

// spans records spans as text.
type spans struct{ ended []string }

func (s *spans) Start(ctx context.Context, name string, attributes ...slog.Attr) (context.Context, func(error)) {
	return context.WithValue(ctx, spanKey{}, name), func(err error) {
		s.ended = append(s.ended, fmt.Sprint(name, " ", attributes, " ", err))
	}
}

func (s *spans) Inject(ctx context.Context, header http.Header) {
	header.Set("Traceparent", ctx.Value(spanKey{}).(string))
}

// A request has a span, and the server receives its header.
func TestTrace(t *testing.T) {
	t.Parallel()
	var received string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received = r.Header.Get("Traceparent") + ", " + r.Header.Get("Accept")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	client, err := kube.NewClient(&kube.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	tracer := new(spans)
	request := &wire.Request{
		Verb: wire.VerbGet, Resource: wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, Plural: "gadgets"},
		Namespace: "default", Name: "one", Subresource: "status", Header: http.Header{"Accept": {"text/html"}},
	}
	_, err = client.With(wire.Trace(tracer)).Do(t.Context(), request)
	if err == nil || received != "get gadgets.example.com/status, application/json" || len(request.Header) != 1 {
		t.Errorf("received %q, %v, %v", received, request.Header, err)
	}
	want := fmt.Sprintf("get gadgets.example.com/status [verb=get resource=gadgets.example.com/status namespace=default name=one] %v", err)
	if !slices.Equal(tracer.ended, []string{want}) {
		t.Errorf("the spans are %q, not %q", tracer.ended, want)
	}
}

// A nil Tracer allocates nothing.
func TestNoTracer(t *testing.T) {
	failed := errors.New("there is no server")
	plain := kube.NewClientFromHandler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) { return nil, failed }))
	traced := plain.With(wire.Trace(nil))
	request := &wire.Request{Verb: wire.VerbGet}
	if n := testing.AllocsPerRun(100, func() { _, _ = traced.Do(context.Background(), request) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
