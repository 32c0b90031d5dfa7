package prometheus

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/yare-go/yare/operator"
)

// Gather returns a part that adds the metrics of gatherer, such as a registry of the author, to the page /metrics of the
// program. The page keeps the metrics of yare. Metrics of the process, with go_ and process_, that both have are on the
// page once. Any other name that both have is an error: at the start it ends the program, and a name that comes later is
// logged and left out of the page. The gatherer must not have the collector of [NewCollector] for the same program.
func Gather(gatherer prometheus.Gatherer) operator.Part { return &gathered{gatherer: gatherer} }

// gathered is the part of [Gather].
type gathered struct {
	part
	gatherer prometheus.Gatherer
}

var _ operator.MetricsJoiner = (*gathered)(nil)

// JoinMetrics returns the function that writes the metrics of the gatherer: see [operator.MetricsJoiner].
func (g *gathered) JoinMetrics(own io.WriterTo) (func(io.Writer) error, error) {
	// A collector that fails now may work later.
	if _, conflict, _ := g.families(own); conflict != nil {
		return nil, fmt.Errorf("the metrics of prometheus.Gather: %w", conflict)
	}
	return func(w io.Writer) error {
		families, conflict, err := g.families(own)
		err = errors.Join(conflict, err)
		encoder := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeTextPlain))
		for _, family := range families {
			err = errors.Join(err, encoder.Encode(family))
		}
		return err
	}, nil
}

// families returns the metrics of the gatherer whose names the program does not have. conflict names the others. err is
// that of the gatherer.
func (g *gathered) families(own io.WriterTo) (further []*dto.MetricFamily, conflict, err error) {
	taken, err := namesOf(own)
	if err != nil {
		return nil, nil, err
	}
	all, err := g.gatherer.Gather()
	for _, family := range all {
		switch name := family.GetName(); {
		case !taken[name]:
			further = append(further, family)
		case !isOfProcess(name):
			conflict = errors.Join(conflict, fmt.Errorf(
				"the metric %s is one of yare and one of the registry: rename that of the registry, or unregister it", name))
		}
	}
	return further, conflict, err
}

// namesOf returns the names of the metrics of a program, also of those without a series.
func namesOf(own io.WriterTo) (map[string]bool, error) {
	var text strings.Builder
	_, err := own.WriteTo(&text)
	names := make(map[string]bool)
	for line := range strings.Lines(text.String()) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ = strings.Cut(name, " ")
			names[name] = true
		}
	}
	return names, err
}
