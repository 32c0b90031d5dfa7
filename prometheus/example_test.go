package prometheus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/prometheus"
)

// A program with a registry of its own has the metrics of yare in the registry.
func ExampleNewCollector() {
	registry := client.NewRegistry()
	collector, part := prometheus.NewCollector()
	registry.MustRegister(collector)
	// A task of the author reads the registry. Others serve the registry by package promhttp.
	report := operator.Task("report", func(context.Context, *controller.Runtime) error {
		families, err := registry.Gather()
		for _, family := range families {
			if family.GetName() == "yare_leader" {
				fmt.Println(family.GetName(), family.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return err
	})
	if err := operator.Run(context.Background(), noServer(), report, part); err != nil {
		fmt.Println(err)
	}
	// Output:
	// yare_leader 1
}

// A program has the metrics of its author's registry on its page /metrics, beside those of yare.
func ExampleGather() {
	registry := client.NewRegistry()
	orders := client.NewCounter(client.CounterOpts{Name: "orders_total", Help: "Orders."})
	registry.MustRegister(orders)
	part := prometheus.Gather(registry)
	orders.Add(7)
	// The program calls JoinMetrics, with its own metrics. A program has the part in operator.Main.
	write, err := part.(operator.MetricsJoiner).JoinMetrics(new(bytes.Buffer))
	if err == nil {
		err = write(os.Stdout)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// # HELP orders_total Orders.
	// # TYPE orders_total counter
	// orders_total 7
}

// noServer returns a client of a server that cannot be reached.
func noServer() *kube.Client {
	return kube.NewClientFromHandler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
		return nil, errors.New("there is no server")
	}))
}
