package ctrl_test

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/yare-go/yare/ctrl"
	"github.com/yare-go/yare/operator"
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
