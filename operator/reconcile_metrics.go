package operator

import (
	"maps"
	"slices"
	"sync"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/kube/wire"
)

// reconcileMetrics counts the results of controllers, and knows their queues. It is the
// [controller.Observer] of a program.
type reconcileMetrics struct {
	results   *metrics.Counter
	durations *metrics.Histogram
	waits     *metrics.Histogram
	skipped   *metrics.Counter
	setBack   *metrics.Counter

	mu     sync.Mutex
	queues map[string]func() controller.QueueStats // by controller
}

// reconcileSeconds returns the bounds of the buckets for reconciles, which may wait for slow
// systems outside of the cluster.
func reconcileSeconds() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
}

// newReconcileMetrics returns metrics of controllers, which it registers.
func newReconcileMetrics(r *metrics.Registry) *reconcileMetrics {
	m := &reconcileMetrics{
		results: r.Counter("yare_reconciles_total",
			"Calls of reconcile and cleanup functions, by how they ended: success, error, conflict, terminal or panic.", "controller", "result"),
		durations: r.Histogram("yare_reconcile_duration_seconds",
			"How long calls of reconcile and cleanup functions took.", reconcileSeconds(), "controller"),
		waits: r.Histogram("yare_reconcile_wait_seconds",
			"How long objects were due before a worker was free.", reconcileSeconds(), "controller"),
		skipped: r.Counter("yare_writes_skipped_total",
			"Writes of reconciles that were not sent, because they would have changed nothing.", "controller"),
		setBack: r.Counter("yare_fields_set_back_total",
			"Fields that an apply has set back because somebody else had changed them, by the kind of the object.", "kind"),
		queues: make(map[string]func() controller.QueueStats),
	}
	m.registerQueues(r)
	return m
}

// Subscribed adds the queue of a controller.
func (m *reconcileMetrics) Subscribed(name string, queue func() controller.QueueStats) {
	for _, outcome := range []controller.Outcome{
		controller.OutcomeSuccess, controller.OutcomeError, controller.OutcomeConflict, controller.OutcomeTerminal, controller.OutcomePanic,
	} {
		m.results.Add(0, name, string(outcome))
	}
	m.skipped.Add(0, name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[name] = queue
}

// isSubscribed reports whether a controller has subscribed to its streams.
func (m *reconcileMetrics) isSubscribed(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queues[name] != nil
}

// hasWaitingObjects reports whether an object waits for a worker of a controller.
func (m *reconcileMetrics) hasWaitingObjects() bool {
	m.mu.Lock()
	queues := slices.Collect(maps.Values(m.queues))
	m.mu.Unlock()
	return slices.ContainsFunc(queues, func(stats func() controller.QueueStats) bool { return stats().Ready > 0 })
}

// Result counts a result.
func (m *reconcileMetrics) Result(r controller.Result) {
	m.results.Add(1, r.Controller, string(r.Outcome()))
	m.durations.Observe(r.Duration.Seconds(), r.Controller)
	m.waits.Observe(r.Waited.Seconds(), r.Controller)
	for _, w := range r.Writes {
		if w.Skipped {
			m.skipped.Add(1, r.Controller)
		}
	}
}

// ObserveSetBack counts a field, for [contested.Observer].
func (m *reconcileMetrics) ObserveSetBack(object wire.Ref, _ contested.Field, _ bool) {
	m.setBack.Add(1, object.Resource.Kind)
}

// registerQueues registers the metrics of queues.
func (m *reconcileMetrics) registerQueues(r *metrics.Registry) {
	for _, each := range []struct {
		kind       metrics.Kind
		name, help string
		value      func(controller.QueueStats) float64
	}{
		{metrics.KindGauge, "yare_queue_ready", "Objects that wait for a worker.",
			func(q controller.QueueStats) float64 { return float64(q.Ready) }},
		{metrics.KindGauge, "yare_queue_waiting", "Objects that wait for their time: a requeue, or the end of a back-off.",
			func(q controller.QueueStats) float64 { return float64(q.Waiting) }},
		{metrics.KindGauge, "yare_queue_running", "Objects that are being reconciled.",
			func(q controller.QueueStats) float64 { return float64(q.Running) }},
		{metrics.KindGauge, "yare_queue_oldest_seconds", "How long the object that has waited longest for a worker has been waiting.",
			func(q controller.QueueStats) float64 { return q.Oldest.Seconds() }},
		{metrics.KindGauge, "yare_queue_running_oldest_seconds", "How long the longest reconcile that has not returned has been running.",
			func(q controller.QueueStats) float64 { return q.LongestRunning.Seconds() }},
		{metrics.KindGauge, "yare_objects_failing", "Objects whose last reconcile failed and that wait for a retry.",
			func(q controller.QueueStats) float64 { return float64(q.Failing) }},
		{metrics.KindCounter, "yare_queue_retries_total", "Calls that failed and are made again.",
			func(q controller.QueueStats) float64 { return float64(q.Retries) }},
		{metrics.KindCounter, "yare_queue_triggers_total", "Requests for a reconcile; several triggers can lead to one call.",
			func(q controller.QueueStats) float64 { return float64(q.Triggers) }},
	} {
		r.Collect(each.kind, each.name, each.help, []string{"controller"}, func(emit metrics.Emit) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for name, queue := range m.queues {
				emit(each.value(queue()), name)
			}
		})
	}
}
