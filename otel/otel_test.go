package otel_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/otel"
)

type gadgetSpec struct{}

func (gadgetSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Gadget"}
}

type gadget = kube.CustomResource[gadgetSpec, kube.None]

// A request has a span below the span of its context, and names it to the server.
func TestSpans(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	tracer := otel.New(provider, propagation.TraceContext{})
	failed := errors.New("there is no server")
	var header http.Header
	client := kube.NewClientFromHandler(wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		header = r.Header
		return nil, failed
	})).With(wire.Trace(tracer))

	ctx, end := tracer.Start(t.Context(), "reconcile gadget", slog.String("name", "one"), slog.Int("attempt", 2), slog.Duration("waited", time.Minute))
	if _, err := kube.Get[gadget](ctx, client, "default", "one"); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	end(nil)

	spans := exporter.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	request, reconcile := spans[0], spans[1]
	if request.Name != "get gadgets.example.com" || request.Parent.SpanID() != reconcile.SpanContext.SpanID() ||
		request.Status.Code != codes.Error || request.Status.Description != failed.Error() || len(request.Events) != 1 {
		t.Errorf("the span of the request is %+v", request)
	}
	if reconcile.Name != "reconcile gadget" || reconcile.Status.Code != codes.Unset {
		t.Errorf("the span of the reconcile is %+v", reconcile)
	}
	values := make(map[string]any)
	for _, a := range reconcile.Attributes {
		values[string(a.Key)] = a.Value.AsInterface()
	}
	if values["name"] != "one" || values["attempt"] != int64(2) || values["waited"] != 60.0 {
		t.Errorf("the attributes are %v", values)
	}
	if sent := header.Get("traceparent"); !strings.Contains(sent, request.SpanContext.TraceID().String()) || !strings.Contains(sent, request.SpanContext.SpanID().String()) {
		t.Errorf("the headers are %v", header)
	}
}

// Without a propagator nothing is sent.
func TestNoPropagator(t *testing.T) {
	t.Parallel()
	header := make(http.Header)
	otel.New(trace.NewTracerProvider(), nil).Inject(t.Context(), header)
	if len(header) > 0 {
		t.Errorf("the headers are %v", header)
	}
}
