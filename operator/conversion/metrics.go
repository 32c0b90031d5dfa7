package conversion

import (
	"time"

	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/operator/conversion/internal/convert"
	"github.com/yare-go/yare/operator/conversion/internal/crdpublishing"
)

// conversionMetrics counts conversions. It is the observer of their handler.
type conversionMetrics struct {
	objects   *metrics.Counter
	calls     *metrics.Counter
	durations *metrics.Histogram
}

// newConversionMetrics returns metrics of the conversions of kinds, which it registers. Each count begins at 0: the
// function increase of Prometheus does not see the first value of a series.
func newConversionMetrics(r *metrics.Registry, kinds []*convert.Kind) *conversionMetrics {
	m := &conversionMetrics{
		objects: r.Counter("yare_conversion_objects_total", "Objects that were converted between versions.",
			"definition", "from", "to", "result"),
		calls: r.Counter("yare_conversion_calls_total", "Calls of API servers that convert objects.", "definition", "result"),
		durations: r.Histogram("yare_conversion_call_duration_seconds", "How long the calls that convert objects took.",
			[]float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}, "definition"),
	}
	for _, k := range kinds {
		definition := definitionName(k)
		for _, result := range convert.CallResults() {
			m.calls.Add(0, definition, string(result))
		}
		for _, from := range k.Versions() {
			for _, to := range k.Versions() {
				if from, to := from.Resource.Version, to.Resource.Version; from != to {
					m.objects.Add(0, definition, from, to, string(convert.ResultConverted))
					m.objects.Add(0, definition, from, to, string(convert.ResultIncomplete))
				}
			}
		}
	}
	return m
}

// ObserveConversions counts conversions, for [convert.Observer].
func (m *conversionMetrics) ObserveConversions(definition, from, to string, result convert.Result, objects int) {
	m.objects.Add(objects, definition, from, to, string(result))
}

// ObserveCall counts a call, for [convert.Observer].
func (m *conversionMetrics) ObserveCall(definition string, result convert.CallResult, _ int, d time.Duration) {
	m.calls.Add(1, definition, string(result))
	m.durations.Observe(d.Seconds(), definition)
}

// registerPublishedConversions registers the metric of the CustomResourceDefinitions of converted kinds.
func registerPublishedConversions(r *metrics.Registry, status func() []crdpublishing.Status) {
	r.Collect(metrics.KindGauge, "yare_conversion_published", "1 if the CustomResourceDefinition has the conversion of this program with its bundle, else 0. Absent while another installation converts the objects.",
		[]string{"definition"}, func(emit metrics.Emit) {
			for _, s := range status() {
				value := 0.0
				if s.IsPublished {
					value = 1
				}
				if !s.IsElsewhere {
					emit(value, s.Name)
				}
			}
		})
}
