// Command controllerruntime is the operator of the benchmarks, written with
// controller-runtime. It reads every object of a kind once, as a reconciler does, and prints
// what that took. It is a module of its own, so that yare does not depend on
// controller-runtime.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/yare-go/yare/bench/tally"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run sets up the manager as kubebuilder does, without listeners and logs. yare has no listeners
// by default either.
func run() error {
	t := tally.New()
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	version := schema.GroupVersion{Group: "bench.example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(scheme, version)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	r := &reconciler{Client: manager.GetClient(), tally: t, kind: func() client.Object { return new(Shop) }}
	if os.Getenv("BENCH_KIND") == "Pod" {
		r.kind = func() client.Object { return new(corev1.Pod) }
	}
	if err := ctrl.NewControllerManagedBy(manager).Named("bench").For(r.kind()).Complete(r); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

type reconciler struct {
	client.Client
	tally *tally.Tally
	kind  func() client.Object
}

// Reconcile reads the object.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.Get(ctx, req.NamespacedName, r.kind()); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.tally.Reconciled(req.String())
	return ctrl.Result{}, nil
}
