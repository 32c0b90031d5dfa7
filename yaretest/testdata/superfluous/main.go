// Command superfluous declares more than it needs: to delete ConfigMaps, and everything that one may do to Secrets.
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

func main() {
	operator.Main(controller.New(reconcile,
		controller.Writes[corev1.ConfigMap](wire.VerbDelete),
		controller.Allow(kube.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}}),
	))
}

func reconcile(context.Context, *corev1.ConfigMap, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}
