// Command operator reconciles every object of a kind once, writes nothing, and prints what that
// took. The benchmarks of package bench run it.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/bench/shop"
	"github.com/yare-go/yare/bench/tally"
	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

func main() {
	t := tally.New()
	seen := func(r controller.Result) { t.Reconciled(r.Object.String()) }
	if os.Getenv("BENCH_KIND") == "Pod" {
		operator.Main(controller.New(reconcile[corev1.Pod], controller.OnResult(seen)))
	}
	operator.Main(controller.New(reconcile[shop.Shop], controller.OnResult(seen)))
}

func reconcile[T any](context.Context, *T, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}
