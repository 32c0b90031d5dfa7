// Package metrics describes the metrics of a program, and writes them in the text format of
// Prometheus, version 0.0.4.
//
// The values of labels must come from a small set, because each combination is a series.
package metrics

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// ContentType is the content type of the text that [Registry.WriteTo] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Registry is a set of metrics with different names. Its methods and those of its metrics may
// be called concurrently.
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
