// Command controllerruntime is the operator of the comparison, written with controller-runtime.
// BENCH_WORK names what it reconciles: Shops and Pods without writes, or WebApps. BENCH_TUNED
// drops managedFields before objects are cached, as the documentation of controller-runtime
// advises, and ignores changes of the status of WebApps. The build tag yare makes the program read from the cache of
// yare, and write by its client. The build tag machines adds the Machines of Cluster API. The command is a module of its
// own, so that yare does not depend on controller-runtime.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/yare-go/yare/lab/bench/internal/probe"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// groupVersion is the group and the version of the custom resources.
var groupVersion = schema.GroupVersion{Group: "bench.example.com", Version: "v1"}

// run sets up the manager as kubebuilder does, with an election, metrics and health on free ports. It logs nothing.
// BENCH_LEASE is the name of the Lease.
func run() error {
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(groupVersion, &Shop{}, &ShopList{}, &WebApp{}, &WebAppList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	options := ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: "127.0.0.1:0"},
		HealthProbeBindAddress:  "127.0.0.1:0",
		LeaderElection:          true,
		LeaderElectionID:        os.Getenv("BENCH_LEASE"),
		LeaderElectionNamespace: "default",
	}
	if options.NewCache, options.NewClient, err = cacheAndClient(config); err != nil {
		return err
	}
	tuned := os.Getenv("BENCH_TUNED") != ""
	if tuned {
		options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	switch work := os.Getenv("BENCH_WORK"); work {
	case "shops":
		err = readAll(manager, func() client.Object { return new(Shop) })
	case "pods":
		err = readAll(manager, func() client.Object { return new(corev1.Pod) })
	case "machines":
		err = addMachines(scheme)
		if err == nil {
			err = readAll(manager, newMachine)
		}
	case "webapps":
		err = (&webAppReconciler{Client: manager.GetClient()}).setUp(manager, tuned)
	default:
		err = fmt.Errorf("BENCH_WORK is %q: use shops, pods, machines or webapps", work)
	}
	err = errors.Join(err, manager.AddHealthzCheck("healthz", healthz.Ping), manager.AddReadyzCheck("readyz", healthz.Ping))
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// readAll adds a controller that reconciles all objects of a kind and writes nothing.
func readAll(manager ctrl.Manager, newObject func() client.Object) error {
	r := &reader{Client: manager.GetClient(), probe: probe.FromEnv(), newObject: newObject}
	return ctrl.NewControllerManagedBy(manager).Named("bench").For(newObject()).Complete(r)
}

type reader struct {
	client.Client
	probe     *probe.Probe
	newObject func() client.Object
}

// Reconcile reads the object.
func (r *reader) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := r.newObject()
	if err := r.Get(ctx, req.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.probe.Reconciled(object.GetName(), object.GetResourceVersion())
	return ctrl.Result{}, nil
}
