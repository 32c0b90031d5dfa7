package metrics

import vm "github.com/VictoriaMetrics/metrics"

// Counter counts, for each combination of the values of its labels.
type Counter struct {
	series
	set *vm.Set
}

// Counter registers a counter. Its name should end with _total.
func (r *Registry) Counter(name, help string, labels ...string) *Counter {
	c := &Counter{series{name, labels}, vm.NewSet()}
	r.add(family{name, help, KindCounter, c.set.WritePrometheus})
	return c
}

// Add counts n, which must not be negative. The values are those of the labels, in their
// order. With 0 the series is there from then on, so that its first increase can be seen.
func (c *Counter) Add(n int, values ...string) {
	c.set.GetOrCreateCounter(c.of(values)).Add(n)
}
