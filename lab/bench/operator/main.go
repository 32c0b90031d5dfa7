// Command operator is the operator of the comparison, written with yare. BENCH_WORK names what it
// reconciles: Shops and Pods without writes, or WebApps. With BENCH_PROJECTED=1 it reads only some
// fields of Shops and Pods.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/lab/bench/internal/probe"
	"github.com/yare-go/yare/lab/bench/internal/workload"
	"github.com/yare-go/yare/operator"
)

func main() {
	work := os.Getenv("BENCH_WORK")
	if os.Getenv("BENCH_PROJECTED") == "1" {
		work = "projected " + work
	}
	switch work {
	case "projected shops":
		operator.Main(controller.New(readAll[shopSize](probe.FromEnv())))
	case "projected pods":
		operator.Main(controller.New(readAll[podPhase](probe.FromEnv())))
	case "shops":
		operator.Main(controller.New(readAll[workload.Shop](probe.FromEnv())))
	case "pods":
		operator.Main(controller.New(readAll[corev1.Pod](probe.FromEnv())))
	case "webapps":
		operator.Main(newWebAppController())
	default:
		fmt.Fprintf(os.Stderr, "BENCH_WORK is %q: use shops, pods or webapps\n", work)
		os.Exit(2)
	}
}

// readAll returns a reconcile function that writes nothing.
func readAll[T any, P kube.ObjectOf[T]](
	p *probe.Probe,
) func(context.Context, *T, *kube.Client) (controller.Action, error) {
	return func(_ context.Context, t *T, _ *kube.Client) (controller.Action, error) {
		p.Reconciled(P(t).GetName(), P(t).GetResourceVersion())
		return controller.Done(), nil
	}
}

// shopSize is the metadata of a Shop, and how many replicas the Shop has and wants.
type shopSize struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		AvailableReplicas int32 `json:"availableReplicas"`
	} `json:"status"`
}

// Projection returns the kind.
func (shopSize) Projection() (wire.Resource, error) { return kube.ResourceOf[workload.Shop]() }

// podPhase is the metadata of a Pod, and its phase.
type podPhase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

// Projection returns the kind.
func (podPhase) Projection() (wire.Resource, error) { return kube.ResourceOf[corev1.Pod]() }
