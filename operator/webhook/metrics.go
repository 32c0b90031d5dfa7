package webhook

import (
	"time"

	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
)

// callMetrics counts the calls of webhooks. It is the observer of their handler.
type callMetrics struct {
	calls     *metrics.Counter
	durations *metrics.Histogram
	dropped   *metrics.Counter
}

// newCallMetrics returns metrics of the calls of webhooks, which it registers. Each count begins at 0: the function
// increase of Prometheus does not see the first value of a series. A call that is refused before it is read has no
// operation.
func newCallMetrics(r *metrics.Registry, webhooks []*admission.Webhook) *callMetrics {
	m := &callMetrics{
		calls: r.Counter("yare_webhook_calls_total", "Calls of webhooks that were answered.",
			"webhook", "operation", "result"),
		durations: r.Histogram("yare_webhook_call_duration_seconds", "How long the calls of webhooks took.",
			[]float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}, "webhook"),
		dropped: r.Counter("yare_webhook_dropped_fields_total",
			"Fields that a defaulter wanted to change or remove.", "webhook"),
	}
	for _, w := range webhooks {
		for _, operation := range append([]string{""}, w.Operations()...) {
			for _, result := range admission.Results() {
				m.calls.Add(0, w.Name(), operation, string(result))
			}
		}
		m.dropped.Add(0, w.Name())
	}
	return m
}

// ObserveCall counts a call, for [admission.Observer].
func (m *callMetrics) ObserveCall(webhook, operation string, result admission.Result, d time.Duration) {
	m.calls.Add(1, webhook, operation, string(result))
	m.durations.Observe(d.Seconds(), webhook)
}

// ObserveDropped counts fields that a defaulter wanted to change or remove, for [admission.Observer].
func (m *callMetrics) ObserveDropped(webhook string, fields int) { m.dropped.Add(fields, webhook) }
