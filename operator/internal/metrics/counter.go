package metrics

import vm "github.com/VictoriaMetrics/metrics"

// Counter counts separately for each combination of the values of its labels.
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

// Add adds n, which must not be negative, to the series with these values of the labels, in
// their order. Adding 0 creates the series, so that its first increase is visible.
func (c *Counter) Add(n int, values ...string) {
	c.set.GetOrCreateCounter(c.with(values)).Add(n)
}
