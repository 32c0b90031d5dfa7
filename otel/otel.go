// Package otel adapts OpenTelemetry to [wire.Tracer], so that a program has a span for each
// reconcile, each cleanup and each request to the API server:
//
//	operator.Program{
//		Parts:  parts,
//		Tracer: otel.New(provider, propagation.TraceContext{}),
//	}.Main()
//
// The program makes the provider, with the exporter and the sampler of its choice, and shuts it
// down when Main is about to end, such as in an operator.Task that waits for its context.
//
// The package is a module of its own. It imports the API of OpenTelemetry, and not its SDK.
package otel

import (
	"context"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/yare-go/yare/kube/wire"
)

// scope is the name of the instrumentation.
const scope = "github.com/yare-go/yare"

// New returns a tracer that records spans with a tracer of provider. The propagator adds the
// headers of requests. With a nil propagator requests have no such header: API servers continue a
// trace only for requests of some users (KEP-647).
func New(provider trace.TracerProvider, propagator propagation.TextMapPropagator) wire.Tracer {
	return tracer{provider.Tracer(scope), propagator}
}

type tracer struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// Start implements [wire.Tracer].
func (t tracer) Start(ctx context.Context, name string, attributes ...slog.Attr) (context.Context, func(error)) {
	converted := make([]attribute.KeyValue, len(attributes))
	for i, a := range attributes {
		converted[i] = convert(a)
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(converted...))
	return ctx, func(err error) {
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// Inject implements [wire.Tracer].
func (t tracer) Inject(ctx context.Context, header http.Header) {
	if t.propagator != nil {
		t.propagator.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// convert returns an attribute of OpenTelemetry. A duration is a number of seconds.
func convert(a slog.Attr) attribute.KeyValue {
	switch value := a.Value.Resolve(); value.Kind() {
	case slog.KindBool:
		return attribute.Bool(a.Key, value.Bool())
	case slog.KindInt64:
		return attribute.Int64(a.Key, value.Int64())
	case slog.KindFloat64:
		return attribute.Float64(a.Key, value.Float64())
	case slog.KindDuration:
		return attribute.Float64(a.Key, value.Duration().Seconds())
	default:
		return attribute.String(a.Key, value.String())
	}
}
