package metrics

import (
	"io"
	"maps"
	"slices"

	vm "github.com/VictoriaMetrics/metrics"
)

// Emit tells the value of one series. The values are those of the labels, in their order;
// what is told of the same values is added up.
type Emit func(value float64, values ...string)

// Collect registers a metric of which somebody else has the figures: collect is called each
// time when it is read, by several goroutines.
func (r *Registry) Collect(kind Kind, name, help string, labels []string, collect func(Emit)) {
	of := series{name, labels}.of
	r.add(family{name, help, kind, func(w io.Writer) {
		sums := make(map[string]float64)
		collect(func(v float64, values ...string) { sums[of(values)] += v })
		for _, each := range slices.Sorted(maps.Keys(sums)) {
			vm.WriteGaugeFloat64(w, each, sums[each]) // of any kind: a sample looks the same
		}
	}})
}
