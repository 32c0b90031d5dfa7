package metrics

// Emit tells the value of one series. The values are those of the labels, in their order;
// what is told of the same values is added up.
type Emit func(value float64, values ...string)

type collected struct {
	description
	collect func(Emit)
}

// Collect registers a metric of which somebody else has the figures: collect is called each
// time when it is read, by several goroutines.
func (r *Registry) Collect(kind Kind, name, help string, labels []string, collect func(Emit)) {
	r.add(&collected{description{name: name, help: help, kind: kind, labels: labels}, collect})
}

func (c *collected) describe() description { return c.description }

func (c *collected) write(t *text) {
	series := make(map[string]float64)
	c.collect(func(v float64, values ...string) { series[key(c.labels, values)] += v })
	for _, k := range sortedKeys(series) {
		t.sample(c.name, "", c.labels, values(k), series[k])
	}
}
