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
	mu       sync.Mutex
	families []family
}

// family is all series of one name.
type family struct {
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

// add registers f. It panics if the name is taken.
func (r *Registry) add(f family) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.families {
		if other.name == f.name {
			panic(fmt.Sprintf("the metric %s is registered twice", f.name))
		}
	}
	r.families = append(r.families, f)
}

// Counter registers a counter. Its name should end with _total.
func (r *Registry) Counter(name, help string, labels ...string) *Counter {
	c := &Counter{series: series{name, labels}, counts: make(map[string]int)}
	r.add(family{name, help, KindCounter, c.writeTo})
	return c
}

// Histogram registers a histogram with these upper bounds of its buckets, in ascending order.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...string) *Histogram {
	h := &Histogram{series: series{name, labels}, bounds: bounds, observed: make(map[string]*observations)}
	r.add(family{name, help, kindHistogram, h.writeTo})
	return h
}

// Emit records the value of one series, with the values of its labels in their order. Values of
// the same series are added up.
type Emit func(value float64, values ...string)

// Collect registers a metric whose values belong to somebody else. Each read of the metric
// calls collect, from several goroutines.
func (r *Registry) Collect(kind Kind, name, help string, labels []string, collect func(Emit)) {
	series := series{name, labels}
	r.add(family{name, help, kind, func(w io.Writer) {
		sums := make(map[string]float64)
		collect(func(v float64, values ...string) { sums[series.labelsOf(values)] += v })
		for _, labels := range slices.Sorted(maps.Keys(sums)) {
			fmt.Fprintf(w, "%s %g\n", sample(name, labels), sums[labels])
		}
	}})
}

// WriteTo writes all metrics, in the order in which they were registered.
func (r *Registry) WriteTo(w io.Writer) (int64, error) {
	r.mu.Lock()
	families := r.families[:len(r.families):len(r.families)]
	r.mu.Unlock()
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	var text bytes.Buffer
	for _, f := range families {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", f.name, escape.Replace(f.help), f.name, f.kind)
		f.writeTo(&text)
	}
	return text.WriteTo(w)
}
