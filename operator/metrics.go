package operator

import (
	"context"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/metrics"
)

// figures holds the metrics of one program. It is the [controller.Observer] of its controllers.
// docs/metrics.md lists the metrics. No label has the name of an object.
type figures struct {
	registry metrics.Registry

	results  *metrics.Counter
	took     *metrics.Histogram
	waited   *metrics.Histogram
	skipped  *metrics.Counter
	requests *metrics.Counter
	answered *metrics.Histogram
	conflict *metrics.Counter

	// elected is the field Elected of [controller.Runtime]. It is set before the metrics are read.
	elected <-chan struct{}

	mu     sync.Mutex
	queues map[string]func() controller.QueueStats
}

// reconcileSeconds returns the bounds of the buckets for reconciles, which may wait for slow
// systems outside of the cluster.
func reconcileSeconds() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
}

// requestSeconds returns the bounds of the buckets for requests.
func requestSeconds() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}
}

// newFigures returns the metrics, without those of streams: see collectStreams.
func newFigures() *figures {
	f := &figures{queues: make(map[string]func() controller.QueueStats)}
	r := &f.registry
	f.results = r.Counter("yare_reconciles_total",
		"Calls of reconcile and cleanup functions, by how they ended: success, error, conflict, terminal or panic.", "controller", "result")
	f.took = r.Histogram("yare_reconcile_duration_seconds",
		"How long calls of reconcile and cleanup functions took.", reconcileSeconds(), "controller")
	f.waited = r.Histogram("yare_reconcile_wait_seconds",
		"How long objects were due before a worker was free.", reconcileSeconds(), "controller")
	f.skipped = r.Counter("yare_writes_skipped_total",
		"Writes of reconciles that were not sent, because they would have changed nothing.", "controller")
	f.collectQueues()
	f.requests = r.Counter("yare_requests_total",
		"Requests to the API server, without repetitions, by HTTP status; the code none means no answer.", "verb", "resource", "code")
	f.answered = r.Histogram("yare_request_duration_seconds",
		"How long requests to the API server took, with their repetitions; of a watch, until it began.", requestSeconds(), "verb", "resource")
	f.conflict = r.Counter("yare_write_conflicts_total",
		"Writes that the API server refused because of a conflict.", "verb", "resource")
	r.Collect(metrics.KindGauge, "yare_leader", "1 if this replica leads, or the program has no leader election, else 0.", nil,
		func(emit metrics.Emit) { emit(f.leader()) })
	f.collectProcess()
	return f
}

// leader returns 1 if this replica leads, or the program has no leader election, else 0.
func (f *figures) leader() float64 {
	if f.elected == nil {
		return 1
	}
	select {
	case <-f.elected:
		return 1
	default:
		return 0
	}
}

// Queue registers the queue of one controller.
func (f *figures) Queue(name string, queue func() controller.QueueStats) {
	for _, outcome := range controller.Outcomes() {
		f.results.Add(0, name, string(outcome))
	}
	f.skipped.Add(0, name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queues[name] = queue
}

// isSubscribed reports whether a controller has subscribed to its streams.
func (f *figures) isSubscribed(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queues[name] != nil
}

// Result counts a result.
func (f *figures) Result(r controller.Result) {
	f.results.Add(1, r.Controller, string(r.Outcome()))
	f.took.Observe(r.Duration.Seconds(), r.Controller)
	f.waited.Observe(r.Waited.Seconds(), r.Controller)
	for _, w := range r.Writes {
		if w.Skipped {
			f.skipped.Add(1, r.Controller)
		}
	}
}

// collectQueues registers the metrics of queues.
func (f *figures) collectQueues() {
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
		{metrics.KindCounter, "yare_queue_retries_total", "Calls that failed and are made again.",
			func(q controller.QueueStats) float64 { return float64(q.Retries) }},
		{metrics.KindCounter, "yare_queue_triggers_total", "Requests for a reconcile; several triggers can lead to one call.",
			func(q controller.QueueStats) float64 { return float64(q.Triggers) }},
	} {
		f.registry.Collect(each.kind, each.name, each.help, []string{"controller"}, func(emit metrics.Emit) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for name, queue := range f.queues {
				emit(each.value(queue()), name)
			}
		})
	}
}

// collectStreams registers the metrics of streams. It is called once, before the metrics are
// read.
func (f *figures) collectStreams(stats func() []cache.Stats) {
	for _, each := range []struct {
		kind       metrics.Kind
		name, help string
		value      func(cache.Stats) float64
	}{
		{metrics.KindGauge, "yare_stream_synced", "1 once the stream has been listed, else 0.",
			func(s cache.Stats) float64 {
				if s.Synced {
					return 1
				}
				return 0
			}},
		{metrics.KindGauge, "yare_stream_objects", "Objects in the cache.",
			func(s cache.Stats) float64 { return float64(s.Objects) }},
		{metrics.KindGauge, "yare_stream_bytes", "What the contents of the objects take in memory, compressed, with their dictionaries.",
			func(s cache.Stats) float64 { return float64(s.Bytes + s.Dictionary) }},
		{metrics.KindGauge, "yare_stream_json_bytes", "What the server sent for the objects in the cache.",
			func(s cache.Stats) float64 { return float64(s.JSON) }},
		{metrics.KindCounter, "yare_stream_restarts_total", "Lists after the first: each time a watch could not be resumed.",
			func(s cache.Stats) float64 { return float64(s.Restarts) }},
		{metrics.KindCounter, "yare_stream_errors_total", "Errors of the stream, without those of single objects.",
			func(s cache.Stats) float64 { return float64(s.Errors) }},
		{metrics.KindCounter, "yare_stream_decode_failures_total", "Versions of objects that could not be read.",
			func(s cache.Stats) float64 { return float64(s.DecodeFailures) }},
	} {
		labels := []string{"resource", "namespace", "selector", "form"}
		f.registry.Collect(each.kind, each.name, each.help, labels, func(emit metrics.Emit) {
			for _, s := range stats() {
				emit(each.value(s), s.Stream.Resource.String(), s.Stream.Namespace, selectorOf(s.Stream), formOf(s.Stream))
			}
		})
	}
}

// selectorOf returns the selectors of a stream, as its requests have them.
func selectorOf(s kube.Stream) string {
	text := ""
	for _, selector := range []string{s.LabelSelector, s.FieldSelector, s.ShardSelector} {
		if selector == "" {
			continue
		}
		if text != "" {
			text += ";"
		}
		text += selector
	}
	return text
}

// formOf returns the representation of the objects of a stream, in words.
func formOf(s kube.Stream) string {
	if s.Representation == kube.Full {
		return "full"
	}
	return string(s.Representation)
}

// countRequests returns next, with its requests counted.
func (f *figures) countRequests(next kube.Handler) kube.Handler {
	return kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
		started := time.Now()
		response, err := next.Do(ctx, r)
		f.recordRequest(r, response, err, time.Since(started))
		return response, err
	})
}

// recordRequest counts r, which took so long with its repetitions.
func (f *figures) recordRequest(r *kube.Request, response *kube.Response, err error, took time.Duration) {
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
	f.requests.Add(1, verb, resource, code)
	f.answered.Observe(took.Seconds(), verb, resource)
	if r.Verb.IsWrite() && kube.IsConflict(err) {
		f.conflict.Add(1, verb, resource)
	}
}

// WriteTo writes all metrics.
func (f *figures) WriteTo(w io.Writer) (int64, error) { return f.registry.WriteTo(w) }
