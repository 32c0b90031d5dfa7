// Package metrics describes the metrics of a program, and writes them in the text format of
// Prometheus, version 0.0.4.
//
// The values of labels must come from a small set, because each combination is a series.
package metrics

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// ContentType is the content type of the text that [Registry.WriteTo] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Registry is a set of metrics with different names. The methods of a Registry and of its metrics may be
// called concurrently.
type Registry struct {
	mu      sync.Mutex
	metrics []metric
}

// metric is all series of one name.
type metric struct {
	name, help string
	kind       Kind
	// writeTo writes all series, in the same order each time.
	writeTo func(io.Writer)
}

// Kind is the type of a metric.
type Kind string

// The kinds of metrics.
const (
	KindCounter   Kind = "counter"
	KindGauge     Kind = "gauge"
	kindHistogram Kind = "histogram"
)

// add registers a metric. It panics if the name is taken.
func (r *Registry) add(m metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.metrics {
		if other.name == m.name {
			panic(fmt.Sprintf("the metric %s is registered twice", m.name))
		}
	}
	r.metrics = append(r.metrics, m)
}

// Counter registers a counter. Its name should end with _total.
func (r *Registry) Counter(name, help string, labels ...string) *Counter {
	c := &Counter{description: description{name, labels}, counts: make(map[string]int)}
	r.add(metric{name, help, KindCounter, c.writeTo})
	return c
}

// Histogram registers a histogram with these upper bounds of its buckets, in ascending order.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...string) *Histogram {
	h := &Histogram{description: description{name, labels}, bounds: bounds, observed: make(map[string]*observations)}
	r.add(metric{name, help, kindHistogram, h.writeTo})
	return h
}

// Emit records the value of one series, with the values of its labels in their order. Values of
// the same series are added up.
type Emit func(value float64, values ...string)

// Collect registers a metric whose values belong to somebody else. Each read of the metric
// calls collect, from several goroutines.
func (r *Registry) Collect(kind Kind, name, help string, labels []string, collect func(Emit)) {
	d := description{name, labels}
	r.add(metric{name, help, kind, func(w io.Writer) {
		sums := make(map[string]float64)
		collect(func(v float64, values ...string) { sums[d.labelsOf(values)] += v })
		for _, labels := range slices.Sorted(maps.Keys(sums)) {
			fmt.Fprintf(w, "%s %g\n", sample(name, labels), sums[labels])
		}
	}})
}

// Gauge registers a gauge without labels.
func (r *Registry) Gauge(name, help string, value func() float64) {
	r.Collect(KindGauge, name, help, nil, func(emit Emit) { emit(value()) })
}

// WriteTo writes all metrics, in the order in which they were registered.
func (r *Registry) WriteTo(w io.Writer) (int64, error) {
	r.mu.Lock()
	all := r.metrics[:len(r.metrics):len(r.metrics)]
	r.mu.Unlock()
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	var text bytes.Buffer
	for _, m := range all {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", m.name, escape.Replace(m.help), m.name, m.kind)
		m.writeTo(&text)
	}
	return text.WriteTo(w)
}
