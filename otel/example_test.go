package otel_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/otel"
)

// A tool without package operator records a span for each request of its client. An operator sets the field Tracer of
// operator.Program instead.
func ExampleNew() {
	exporter := tracetest.NewInMemoryExporter() // a program exports to a collector
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	server := wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		fmt.Println("the server gets", len(r.Header), "header")
		return &wire.Response{Code: 200, Body: []byte(`{"metadata":{"name":"g"}}`)}, nil
	})
	client := kube.NewClientFromHandler(server).With(wire.Trace(otel.New(provider, propagation.TraceContext{})))
	if _, err := kube.Get[gadget](context.Background(), client, "default", "g"); err != nil {
		fmt.Println(err)
	}
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name)
	}
	// Output:
	// the server gets 1 header
	// get gadgets.example.com
}
