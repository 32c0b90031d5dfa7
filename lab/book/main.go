// Command book runs one of several operators that are written with controller-runtime as its book writes them. Its
// argument names the operator. The operators are explored: the right ones must have no finding, and the wrong ones must
// have one.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the operator of a name.
func run(name string) error {
	write, exists := operators()[name]
	if !exists {
		return fmt.Errorf("there is no operator %q", name)
	}
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(groupVersion, &Page{}, &PageList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	c := manager.GetClient()
	reconciler := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var page Page
		if err := c.Get(ctx, request.NamespacedName, &page); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if !page.DeletionTimestamp.IsZero() {
			return reconcile.Result{}, nil
		}
		return write(ctx, c, scheme, &page)
	})
	err = ctrl.NewControllerManagedBy(manager).For(&Page{}).Owns(&corev1.ConfigMap{}).Complete(reconciler)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
