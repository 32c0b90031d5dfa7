// Package metrics keeps counters and histograms, and writes them in the text format that
// Prometheus reads (version 0.0.4).
//
// It is small on purpose: what an operator links is chosen with care. It has no global
// state, and knows three kinds of metrics: counters and histograms, which are counted here,
// and those of which somebody else has the figures, which are asked for when they are read.
// The number of series is up to whoever chooses the values of labels: they must come from a
// small set.
package metrics

import (
	"fmt"
	"io"
	"sync"
)

// Registry is a set of metrics with different names. Its methods, and those of its
// metrics, can be used concurrently.
type Registry struct {
	mu       sync.Mutex
	families []family
}

// family is all series of one name.
type family interface {
	describe() description
	// write writes all series, in the same order each time.
	write(*text)
}

type description struct {
	name, help string
	kind       Kind
	labels     []string
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
		if other.describe().name == f.describe().name {
			panic(fmt.Sprintf("the metric %s is registered twice", f.describe().name))
		}
	}
	r.families = append(r.families, f)
}

// WriteTo writes all metrics, in the order in which they were registered.
func (r *Registry) WriteTo(w io.Writer) (int64, error) {
	r.mu.Lock()
	families := r.families[:len(r.families):len(r.families)]
	r.mu.Unlock()
	var t text
	for _, f := range families {
		t.head(f.describe())
		f.write(&t)
	}
	n, err := w.Write(t.buf)
	return int64(n), err
}
