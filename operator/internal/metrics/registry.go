// Package metrics describes the metrics of a program, and gives them the form that
// Prometheus reads (text, version 0.0.4).
//
// VictoriaMetrics/metrics counts and writes the samples. What it lacks without state that is
// common to the whole process, and what is here: what a metric means and of which type it
// is (HELP and TYPE), labels that are named once, and metrics of which somebody else has the
// figures, which are asked for when they are read.
//
// The number of series is up to whoever chooses the values of labels: they must come from a
// small set.
package metrics

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// ContentType is that of what [Registry.WriteTo] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Registry is a set of metrics with different names. Its methods, and those of its
// metrics, can be used concurrently.
type Registry struct {
	mu       sync.Mutex
	families []family
}

// family is all series of one name.
type family struct {
	name, help string
	kind       Kind
	// write writes all series, in the same order each time.
	write func(io.Writer)
}

// Kind is the type of a metric.
type Kind string

// The kinds of metrics.
const (
	KindCounter   Kind = "counter"
	KindGauge     Kind = "gauge"
	kindHistogram Kind = "histogram"
)

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
	var text, samples bytes.Buffer
	for _, f := range families {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", f.name, escape.Replace(f.help), f.name, f.kind)
		samples.Reset()
		f.write(&samples)
		for line := range bytes.Lines(samples.Bytes()) {
			// The author may have told the library to describe metrics, for his own.
			if line[0] != '#' {
				text.Write(line)
			}
		}
	}
	return text.WriteTo(w)
}
