package wire

import (
	"context"
	"log/slog"
	"net/http"
)

// Tracer records spans: pieces of work with a beginning, an end and an error. Module
// github.com/yare-go/yare/otel adapts OpenTelemetry. Several goroutines call its methods, which
// must not block.
type Tracer interface {
	// Start begins a span, below the span of ctx if ctx has one. It returns a context with the new span, and
	// a function that ends the span. The function is called once, with the error of the work or nil.
	Start(ctx context.Context, name string, attributes ...slog.Attr) (context.Context, func(error))
	// Inject adds to header what names the span of ctx to the server, such as traceparent
	// (https://www.w3.org/TR/trace-context/). It may add nothing.
	Inject(ctx context.Context, header http.Header)
}

// Trace returns a wrapper for kube.Client.With that records a span for each request: its name is the
// verb and the resource, and it has the attributes verb, resource, namespace and name. The span of
// a watch ends when the watch begins. The repetitions of a request belong to its span. A nil Tracer
// records nothing and costs nothing.
func Trace(t Tracer) func(next Handler) Handler {
	return func(next Handler) Handler {
		if t == nil {
			return next
		}
		return tracing{t, next}
	}
}

type tracing struct {
	tracer Tracer
	next   Handler
}

// Do passes r on with the headers that name its span.
func (h tracing) Do(ctx context.Context, r *Request) (response *Response, err error) {
	resource := r.Resource.String()
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	ctx, end := h.tracer.Start(ctx, string(r.Verb)+" "+resource,
		slog.String("verb", string(r.Verb)), slog.String("resource", resource),
		slog.String("namespace", r.Namespace), slog.String("name", r.ObjectName()))
	defer func() { end(err) }()
	traced := *r
	if traced.Header = r.Header.Clone(); traced.Header == nil {
		traced.Header = make(http.Header)
	}
	h.tracer.Inject(ctx, traced.Header)
	return h.next.Do(ctx, &traced)
}
