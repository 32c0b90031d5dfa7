package operator

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
)

// uncachedRepresentation is the value of the label representation for the streams that a [Watcher] follows: the program
// keeps no object of them in any representation.
const uncachedRepresentation = "uncached"

// registerStreamMetrics registers the metrics of streams. stats returns the streams of the cache. uncached returns the
// streams that parts follow without the cache, which have only the metrics that concern the watch.
func registerStreamMetrics(r *metrics.Registry, stats func() []cache.Stats, uncached func() []follow.StreamState) {
	for _, each := range []struct {
		kind       metrics.Kind
		name, help string
		value      func(cache.Stats) float64
		// isOfWatch is true for what a stream without a cache has, too.
		isOfWatch bool
	}{
		{metrics.KindGauge, "yare_stream_synced", "1 once the stream has been listed, else 0.",
			func(s cache.Stats) float64 {
				if s.Synced {
					return 1
				}
				return 0
			}, true},
		{metrics.KindGauge, "yare_stream_watching", "1 while the watch of the stream is open, or the server does not serve the resource, else 0.",
			func(s cache.Stats) float64 {
				if s.Watching {
					return 1
				}
				return 0
			}, true},
		{metrics.KindGauge, "yare_stream_last_event_timestamp_seconds", "When the last change or bookmark came, in seconds since 1970. Kinds without bookmarks are silent for hours.",
			func(s cache.Stats) float64 {
				if s.LastEvent.IsZero() {
					return 0
				}
				return float64(s.LastEvent.UnixMilli()) / 1000
			}, true},
		{metrics.KindGauge, "yare_stream_objects", "Objects in the cache.",
			func(s cache.Stats) float64 { return float64(s.Objects) }, false},
		{metrics.KindGauge, "yare_stream_bytes", "What the contents of the objects take in memory, compressed, with their dictionaries.",
			func(s cache.Stats) float64 { return float64(s.Bytes + s.Dictionary) }, false},
		{metrics.KindGauge, "yare_stream_json_bytes", "What the server sent for the objects in the cache.",
			func(s cache.Stats) float64 { return float64(s.JSON) }, false},
		{metrics.KindCounter, "yare_stream_restarts_total", "Lists after the first: each time a watch could not be resumed.",
			func(s cache.Stats) float64 { return float64(s.Restarts) }, false},
		{metrics.KindCounter, "yare_stream_errors_total", "Errors of the stream, without those of single objects.",
			func(s cache.Stats) float64 { return float64(s.Errors) }, false},
		{metrics.KindCounter, "yare_stream_decode_failures_total", "Versions of objects that could not be read.",
			func(s cache.Stats) float64 { return float64(s.DecodeFailures) }, false},
	} {
		labels := []string{"resource", "namespace", "selector", "representation"}
		r.Collect(each.kind, each.name, each.help, labels, func(emit metrics.Emit) {
			for _, s := range stats() {
				emit(each.value(s), s.Stream.Resource.String(), s.Stream.Namespace, selectorOf(s.Stream), cmp.Or(string(s.Stream.Representation), "full"))
			}
			if !each.isOfWatch {
				return
			}
			for _, s := range uncached() {
				value := each.value(cache.Stats{Synced: s.Synced, Watching: s.Watching, LastEvent: s.LastEvent})
				emit(value, s.Stream.Resource.String(), s.Stream.Namespace, selectorOf(s.Stream), uncachedRepresentation)
			}
		})
	}
}

// selectorOf returns the selectors of a stream, as its requests have them.
func selectorOf(s wire.Stream) string {
	selectors := []string{s.LabelSelector, s.FieldSelector, s.ShardSelector}
	return strings.Join(slices.DeleteFunc(selectors, func(selector string) bool { return selector == "" }), ";")
}
