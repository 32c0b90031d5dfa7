package metrics

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
)

// Histogram counts observations in buckets, separately for each combination of the values of
// its labels.
type Histogram struct {
	description
	bounds []float64

	mu sync.Mutex
	// observed has the texts of the labels as keys.
	observed map[string]*observations
}

// observations holds the observations of one series.
type observations struct {
	// counts are the numbers of observations in each bucket: above the bound of the bucket before,
	// and up to its own. The last bucket has no bound.
	counts []int
	sum    float64
}

// Observe records v, which must not be negative, in the series with these values of the
// labels, in their order.
func (h *Histogram) Observe(v float64, values ...string) {
	labels := h.labelsOf(values)
	bucket := 0
	for bucket < len(h.bounds) && v > h.bounds[bucket] {
		bucket++
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.observed[labels]
	if o == nil {
		o = &observations{counts: make([]int, len(h.bounds)+1)}
		h.observed[labels] = o
	}
	o.counts[bucket]++
	o.sum += v
}

func (h *Histogram) writeTo(w io.Writer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, labels := range slices.Sorted(maps.Keys(h.observed)) {
		others := labels
		if others != "" {
			others += ","
		}
		count := 0
		for i, n := range h.observed[labels].counts {
			bound := math.Inf(1)
			if i < len(h.bounds) {
				bound = h.bounds[i]
			}
			count += n
			fmt.Fprintf(w, "%s_bucket{%sle=\"%g\"} %d\n", h.name, others, bound, count)
		}
		fmt.Fprintf(w, "%s %g\n%s %d\n",
			sample(h.name+"_sum", labels), h.observed[labels].sum, sample(h.name+"_count", labels), count)
	}
}
