package metrics

import vm "github.com/VictoriaMetrics/metrics"

// Histogram counts observations in buckets, separately for each combination of the values of
// its labels.
type Histogram struct {
	series
	set    *vm.Set
	bounds []float64
}

// Histogram registers a histogram with these upper bounds of its buckets, in ascending order.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...string) *Histogram {
	h := &Histogram{series{name, labels}, vm.NewSet(), bounds}
	r.add(family{name, help, kindHistogram, h.set.WritePrometheus})
	return h
}

// Observe records v, which must not be negative, in the series with these values of the
// labels, in their order.
func (h *Histogram) Observe(v float64, values ...string) {
	h.set.GetOrCreatePrometheusHistogramExt(h.with(values), h.bounds).Update(v)
}
