package metrics

import (
	"slices"
	"strings"
	"sync"
)

// Counter counts, for each combination of the values of its labels.
type Counter struct {
	description
	mu     sync.Mutex
	series map[string]float64
}

// Counter registers a counter. Its name should end with _total.
func (r *Registry) Counter(name, help string, labels ...string) *Counter {
	c := &Counter{
		description: description{name: name, help: help, kind: KindCounter, labels: labels},
		series:      make(map[string]float64),
	}
	r.add(c)
	return c
}

// Add counts n, which must not be negative. The values are those of the labels, in their
// order. With 0 the series is there from then on, so that its first increase can be seen.
func (c *Counter) Add(n float64, values ...string) {
	k := key(c.labels, values)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.series[k] += n
}

func (c *Counter) describe() description { return c.description }

func (c *Counter) write(t *text) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range sortedKeys(c.series) {
		t.sample(c.name, "", c.labels, values(k), c.series[k])
	}
}

// separator is in no text that is valid UTF-8.
const separator = "\xff"

// key is the values as one text.
func key(labels, values []string) string {
	if len(labels) != len(values) {
		panic("a metric was given a wrong number of values for its labels")
	}
	return strings.Join(values, separator)
}

func values(key string) []string { return strings.Split(key, separator) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
