// Package prometheus joins the metrics of a program of yare with those of the client library of Prometheus.
//
// An author with metrics in a registry adds them to the page /metrics of the program:
//
//	operator.Main(controller.New(reconcile), secure.New(), prometheus.Gather(registry))
//
// An author who serves a registry already adds the metrics of yare to the registry:
//
//	collector, part := prometheus.NewCollector()
//	registry.MustRegister(collector)
//	operator.Main(controller.New(reconcile), part)
package prometheus

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// NewCollector returns a collector of the metrics of a program for a registry of the author, and the part by which the
// collector gets the metrics of its program. The metrics are those whose names begin with yare_. Those of the process, with
// go_ and process_, are left out: the package collectors of the client library has them. The collector has no metrics
// before the program starts. With the part, a program counts its metrics also without --listen.
func NewCollector() (prometheus.Collector, operator.Part) {
	c := new(collector)
	return c, c
}

// collector is what [NewCollector] returns.
type collector struct {
	part
	// program has the metrics of the program. It is nil before the program starts.
	program atomic.Pointer[io.WriterTo]
}

var _ operator.MetricsJoiner = (*collector)(nil)

// JoinMetrics keeps the metrics of the program for Collect: see [operator.MetricsJoiner].
func (c *collector) JoinMetrics(own io.WriterTo) (func(io.Writer) error, error) {
	c.program.Store(&own)
	return nil, nil // the page gets no further metrics
}

// Describe describes nothing, because the labels of the metrics are known once there are series.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect collects the metrics of the program.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	own := c.program.Load()
	if own == nil {
		return
	}
	families, err := familiesOf(*own)
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	for name, family := range families {
		if isOfProcess(name) {
			continue
		}
		for _, series := range family.GetMetric() {
			var labels []string
			for _, label := range series.Label {
				labels = append(labels, label.GetName())
			}
			metrics <- collected{prometheus.NewDesc(name, family.GetHelp(), labels, nil), series}
		}
	}
}

// collected is one series of the program.
type collected struct {
	desc   *prometheus.Desc
	series *dto.Metric
}

// Desc returns the description.
func (c collected) Desc() *prometheus.Desc { return c.desc }

// Write sets out to the series.
func (c collected) Write(out *dto.Metric) error {
	out.Label, out.Counter, out.Gauge, out.Histogram = c.series.Label, c.series.Counter, c.series.Gauge, c.series.Histogram
	return nil
}

// part is what the parts of this package share.
type part struct{}

// Needs returns the needs of a service, which does not keep a program running.
func (part) Needs() (kube.Needs, error) { return kube.Needs{Service: true}, nil }

// Start does nothing: the program joins the metrics before it starts its parts.
func (part) Start(context.Context, *controller.Runtime) error { return nil }

// familiesOf returns the metrics of a program, by their names.
func familiesOf(own io.WriterTo) (map[string]*dto.MetricFamily, error) {
	var text bytes.Buffer
	if _, err := own.WriteTo(&text); err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(&text)
}

// isOfProcess reports whether a metric is one of the process, which both yare and the client library can have.
func isOfProcess(name string) bool {
	return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
}
