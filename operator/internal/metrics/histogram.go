package metrics

import (
	"slices"
	"strconv"
	"sync"
)

// Histogram counts observations in buckets, for each combination of the values of its
// labels.
type Histogram struct {
	description
	bounds []float64
	mu     sync.Mutex
	series map[string]*buckets
}

type buckets struct {
	// counts are those of each bucket alone; the last has no upper bound.
	counts []uint64
	sum    float64
}

// Histogram registers a histogram with these upper bounds of its buckets, which ascend.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...string) *Histogram {
	h := &Histogram{
		description: description{name: name, help: help, kind: kindHistogram, labels: labels},
		bounds:      bounds, series: make(map[string]*buckets),
	}
	r.add(h)
	return h
}

// Observe counts v. The values are those of the labels, in their order.
func (h *Histogram) Observe(v float64, values ...string) {
	k := key(h.labels, values)
	i, _ := slices.BinarySearch(h.bounds, v) // a bound belongs to its own bucket
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.series[k]
	if b == nil {
		b = &buckets{counts: make([]uint64, len(h.bounds)+1)}
		h.series[k] = b
	}
	b.counts[i]++
	b.sum += v
}

func (h *Histogram) describe() description { return h.description }

func (h *Histogram) write(t *text) {
	h.mu.Lock()
	defer h.mu.Unlock()
	labels := append(slices.Clone(h.labels), "le")
	for _, k := range sortedKeys(h.series) {
		b, of := h.series[k], values(k)
		var total uint64
		for i, n := range b.counts {
			total += n
			bound := "+Inf"
			if i < len(h.bounds) {
				bound = strconv.FormatFloat(h.bounds[i], 'g', -1, 64)
			}
			t.sample(h.name, "_bucket", labels, append(slices.Clone(of), bound), float64(total))
		}
		t.sample(h.name, "_sum", h.labels, of, b.sum)
		t.sample(h.name, "_count", h.labels, of, float64(total))
	}
}
