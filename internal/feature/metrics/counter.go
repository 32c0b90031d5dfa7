package metrics

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// Counter counts separately for each combination of the values of its labels.
type Counter struct {
	description

	mu sync.Mutex
	// counts has the texts of the labels as keys.
	counts map[string]int
}

// Add adds n, which must not be negative, to the series with these values of the labels, in
// their order. Adding 0 creates the series, so that its first increase is visible.
func (c *Counter) Add(n int, values ...string) {
	labels := c.labelsOf(values)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[labels] += n
}

func (c *Counter) writeTo(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, labels := range slices.Sorted(maps.Keys(c.counts)) {
		fmt.Fprintf(w, "%s %d\n", sample(c.name, labels), c.counts[labels])
	}
}
