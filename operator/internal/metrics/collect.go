package metrics

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

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
