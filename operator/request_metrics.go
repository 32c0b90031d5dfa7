package operator

import (
	"context"
	"strconv"
	"time"

	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// requestMetrics counts the requests to the API server.
type requestMetrics struct {
	requests  *metrics.Counter
	durations *metrics.Histogram
	conflicts *metrics.Counter
}

// requestSeconds returns the bounds of the buckets for requests.
func requestSeconds() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}
}

// newRequestMetrics returns metrics of requests, which it registers.
func newRequestMetrics(r *metrics.Registry) *requestMetrics {
	return &requestMetrics{
		requests: r.Counter("yare_requests_total",
			"Requests to the API server, without repetitions, by HTTP status; the code none means no answer.", "verb", "resource", "code"),
		durations: r.Histogram("yare_request_duration_seconds",
			"How long requests to the API server took, with their repetitions; of a watch, until it began.", requestSeconds(), "verb", "resource"),
		conflicts: r.Counter("yare_write_conflicts_total",
			"Writes that the API server refused because of a conflict.", "verb", "resource"),
	}
}

// handler returns next, and counts its requests.
func (m *requestMetrics) handler(next wire.Handler) wire.Handler {
	return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		started := time.Now()
		response, err := next.Do(ctx, r)
		m.recordRequest(r, response, err, time.Since(started))
		return response, err
	})
}

// recordRequest counts r. took is the duration of r with its repetitions.
func (m *requestMetrics) recordRequest(r *wire.Request, response *wire.Response, err error, took time.Duration) {
	resource := r.Resource.String()
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	verb := string(r.Verb)
	code := "none"
	if e, ok := kube.AsError(err); ok && e.Code != 0 {
		code = strconv.Itoa(e.Code)
	} else if err == nil {
		code = strconv.Itoa(response.Code)
	}
	m.requests.Add(1, verb, resource, code)
	m.durations.Observe(took.Seconds(), verb, resource)
	if r.Verb.IsWrite() && kube.IsConflict(err) {
		m.conflicts.Add(1, verb, resource)
	}
}
