// Command operator is the operator of the soak. It applies a ConfigMap and a status for each Note, and
// has a finalizer.
package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/lab/bench/internal/workload"
	"github.com/yare-go/yare/operator"
)

func main() {
	operator.Main(controller.New(reconcile,
		controller.FieldManager("note-operator"),
		controller.Owns[corev1.ConfigMap](),
	).Finalizer("notes.soak.example.com/cleanup", cleanup))
}

func reconcile(ctx context.Context, note *workload.Note, c *kube.Client) (controller.Action, error) {
	_, err := kube.Apply(ctx, c, kube.OwnedBy(note, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: note.Namespace, Name: note.Name},
		Data:       map[string]string{"text": note.Spec.Text},
	}))
	if err != nil {
		return controller.Done(), err
	}
	note.Status.Text = note.Spec.Text
	return controller.RequeueAfter(10 * time.Minute), c.ApplyStatus(ctx, note)
}

// cleanup has nothing to clean up: the garbage collector deletes the ConfigMap.
func cleanup(context.Context, *workload.Note, *kube.Client) (controller.Cleanup, error) {
	return controller.CleanupDone(), nil
}
