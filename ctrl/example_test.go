package ctrl_test

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/ctrl"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/kubebuilder"
	"github.com/yare-go/yare/operator/secure"
)

// scheme is that of the program, as main.go of kubebuilder makes it.
var scheme = runtime.NewScheme()

// role is the text of config/rbac/role.yaml, by go:embed.
var role []byte

// CronJobReconciler reconciles CronJobs.
type CronJobReconciler struct {
	reconcile.Reconciler
	client.Client
	Scheme *runtime.Scheme
}

// SetupWithManager adds the controller.
func (r *CronJobReconciler) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).For(new(batchv1.CronJob)).Complete(r)
}

// A program of controller-runtime reads from yare's cache, and writes by yare's client.
func ExampleForConfig() {
	var _ *ctrl.Bridge // what ForConfig returns
	run := func() error {
		config := ctrlruntime.GetConfigOrDie()
		bridge, err := ctrl.ForConfig(config)
		if err != nil {
			return err
		}
		mgr, err := ctrlruntime.NewManager(config, ctrlruntime.Options{
			NewCache:  bridge.NewCache,
			NewClient: bridge.NewClient,
		})
		if err != nil {
			return err
		}
		return mgr.Start(ctrlruntime.SetupSignalHandler())
	}
	_ = run
}

// A manager is a part of a program of yare.
func ExampleManager() {
	main := func() {
		operator.Main(ctrl.Manager("cronjob", role, manager.Options{Scheme: scheme}, func(mgr manager.Manager) error {
			return (&CronJobReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
		}))
	}
	_ = main
}

// CronJob is a type of an API package, with the Definition that yare needs.
type CronJob struct {
	batchv1.CronJob
	cronJobDefinition
}

type cronJobDefinition struct{}

// Definition returns the kind.
func (cronJobDefinition) Definition() kube.Definition {
	return kube.Definition{Group: "batch.example.com", Version: "v1", Kind: "CronJob", Foreign: true}
}

// A reconciler runs on the engine of yare.
func ExampleController() {
	main := func() {
		operator.Main(ctrl.Controller[CronJob](role, scheme, func(c cluster.Cluster) (reconcile.Reconciler, error) {
			return &CronJobReconciler{Client: c.GetClient(), Scheme: c.GetScheme()}, nil
		}, controller.Owns[batchv1.Job]()))
	}
	_ = main
}

// A program keeps the flags that kubebuilder's scaffold gave to it.
func Example_flags() {
	reconcile := func(context.Context, *corev1.Secret, *kube.Client) (controller.Action, error) {
		return controller.Done(), nil
	}
	main := func() {
		kubebuilder.AcceptFlags()
		operator.Main(controller.New(reconcile), secure.New())
	}
	_ = main
}
