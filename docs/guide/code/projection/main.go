// Command projection deletes Pods that have failed. It keeps the metadata and the phase of each Pod, and
// nothing else.
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// PodPhase is the metadata of a Pod, and its phase.
type PodPhase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

// Projection returns the kind.
func (PodPhase) Projection() (wire.Resource, error) { return kube.ResourceOf[corev1.Pod]() }

func main() {
	operator.Main(controller.New(reconcile,
		controller.Name("pod-cleaner"),
		controller.Writes[corev1.Pod](wire.VerbDelete),
	))
}

// reconcile deletes a Pod that has failed.
func reconcile(ctx context.Context, pod *PodPhase, c *kube.Client) (controller.Action, error) {
	if pod.Status.Phase != corev1.PodFailed {
		return controller.Done(), nil
	}
	return controller.Done(), kube.IgnoreNotFound(c.Delete(ctx, pod))
}
