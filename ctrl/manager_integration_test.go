package ctrl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/yare-go/yare/ctrl"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/clientgo"
	"github.com/yare-go/yare/yaretest"
)

type (
	batchSpec struct {
		// Runs is how many Jobs run, one after the other.
		Runs int `json:"runs"`
		// History is how many finished Jobs stay.
		History int `json:"history"`
	}
	batchStatus struct {
		Active   []string `json:"active,omitempty"`
		Finished int      `json:"finished,omitempty"`
	}
	batch = kube.CustomResource[batchSpec, batchStatus]
)

func (batchSpec) Definition() kube.Definition {
	return kube.Definition{Group: "ctrl-test.yare.dev", Version: "v1", Kind: "Batch"}
}

const (
	ownerField     = ".metadata.controller"
	batchFinalizer = "ctrl-test.yare.dev/cleanup"
)

// batchReconciler is written as kubebuilder's tutorial writes one: it lists children by an index, updates the status and
// finalizers, and deletes old children.
type batchReconciler struct {
	client.Client
	scheme   *runtime.Scheme
	recorder events.EventRecorder
}

func (r *batchReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var b batch
	if err := r.Get(ctx, request.NamespacedName, &b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&b, batchFinalizer) {
			return reconcile.Result{}, r.Update(ctx, &b)
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(&b, batchFinalizer) {
		return reconcile.Result{}, r.Update(ctx, &b)
	}
	var jobs batchv1.JobList
	if err := r.List(ctx, &jobs, client.InNamespace(request.Namespace), client.MatchingFields{ownerField: request.Name}); err != nil {
		return reconcile.Result{}, err
	}
	var finished []batchv1.Job
	b.Status.Active = nil
	for _, job := range jobs.Items {
		if job.Status.Succeeded > 0 {
			finished = append(finished, job)
		} else {
			b.Status.Active = append(b.Status.Active, job.Name)
		}
	}
	slices.SortFunc(finished, func(a, b batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	if n := len(finished); n > 0 {
		last := 0
		if _, err := fmt.Sscanf(finished[n-1].Name, request.Name+"-%d", &last); err != nil {
			return reconcile.Result{}, err
		}
		b.Status.Finished = last
	}
	if err := r.Status().Update(ctx, &b); err != nil {
		return reconcile.Result{}, err
	}
	for len(finished) > b.Spec.History {
		if err := r.Delete(ctx, &finished[0], client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		finished = finished[1:]
	}
	if len(b.Status.Active) > 0 || b.Status.Finished >= b.Spec.Runs {
		return reconcile.Result{}, nil
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: fmt.Sprintf("%s-%d", b.Name, b.Status.Finished+1)},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "run", Image: "run"}},
		}}, Suspend: new(true)},
	}
	if err := controllerutil.SetControllerReference(&b, job, r.scheme); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.Create(ctx, job); err != nil {
		return reconcile.Result{}, err
	}
	r.recorder.Eventf(&b, job, corev1.EventTypeNormal, "Started", "Start", "started %s", job.Name)
	return reconcile.Result{}, nil
}

func (r *batchReconciler) SetupWithManager(mgr manager.Manager) error {
	byOwner := func(o client.Object) []string {
		owner := metav1.GetControllerOf(o)
		if owner == nil || owner.Kind != "Batch" {
			return nil
		}
		return []string{owner.Name}
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), new(batchv1.Job), ownerField, byOwner); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).For(new(batch)).Owns(new(batchv1.Job)).
		WithOptions(crcontroller.Options{SkipNameValidation: new(true)}).Complete(r)
}

func batchScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	version := schema.GroupVersion{Group: "ctrl-test.yare.dev", Version: "v1"}
	s.AddKnownTypeWithName(version.WithKind("Batch"), new(batch))
	s.AddKnownTypeWithName(version.WithKind("BatchList"), new(kube.CustomResourceList[batch]))
	metav1.AddToGroupVersion(s, version)
	return s
}

func setUpBatches(mgr manager.Manager) error {
	return (&batchReconciler{mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorder("batches")}).SetupWithManager(mgr)
}

const batchRole = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager-role}
rules:
- {apiGroups: [batch], resources: [jobs], verbs: [create, delete, get, list, patch, update, watch]}
- {apiGroups: [ctrl-test.yare.dev], resources: [batches], verbs: [get, list, patch, update, watch]}
- {apiGroups: [ctrl-test.yare.dev], resources: [batches/finalizers], verbs: [update]}
- {apiGroups: [ctrl-test.yare.dev], resources: [batches/status], verbs: [get, patch, update]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
`

// One program of controller-runtime does the same on its own cache, on that of yare, and as a part of a program of yare.
func TestManager(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[batch](t, cluster)
	config := clientgo.ToREST(cluster.Config())
	run := func(t *testing.T, namespace string, change func(*manager.Options)) {
		o := manager.Options{
			Scheme: batchScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
			Cache: ctrlcache.Options{DefaultNamespaces: map[string]ctrlcache.Config{namespace: {}}},
		}
		change(&o)
		mgr, err := manager.New(config, o)
		must(t, err)
		must(t, setUpBatches(mgr))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		t.Cleanup(func() {
			cancel()
			must(t, <-ended)
		})
	}
	for name, start := range map[string]func(t *testing.T, namespace string){
		"theirs": func(t *testing.T, namespace string) { run(t, namespace, func(*manager.Options) {}) },
		"bridge": func(t *testing.T, namespace string) {
			bridge, err := ctrl.ForConfig(config)
			must(t, err)
			run(t, namespace, func(o *manager.Options) { o.NewCache, o.NewClient = bridge.NewCache, bridge.NewClient })
		},
		"part": func(t *testing.T, namespace string) {
			part := ctrl.Manager("batches", []byte(batchRole), manager.Options{Scheme: batchScheme()}, setUpBatches)
			yaretest.RunParts(t, cluster.InNamespaces(namespace), part)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			start(t, namespace)
			checkBatches(t, cluster, namespace)
		})
	}
}

// checkBatches runs a scenario of a user.
func checkBatches(t *testing.T, cluster *yaretest.Cluster, namespace string) {
	t.Helper()
	ctx := t.Context()
	c, err := client.New(clientgo.ToREST(cluster.Config()), client.Options{Scheme: batchScheme()})
	must(t, err)
	b := &batch{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b"}, Spec: batchSpec{Runs: 3, History: 1}}
	must(t, c.Create(ctx, b))
	key := client.ObjectKeyFromObject(b)
	for n := 1; n <= 3; n++ {
		name := fmt.Sprintf("b-%d", n)
		yaretest.Eventually(t, func() error {
			if err := c.Get(ctx, key, b); err != nil {
				return err
			}
			if !slices.Equal(b.Status.Active, []string{name}) || b.Status.Finished != n-1 {
				return fmt.Errorf("the status is %+v, want %s", b.Status, name)
			}
			return nil
		})
		yaretest.Eventually(t, func() error { // the job controller writes too
			var job batchv1.Job
			if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &job); err != nil {
				return err
			}
			job.Status.Succeeded = 1
			return c.Status().Update(ctx, &job)
		})
	}
	yaretest.Eventually(t, func() error {
		var jobs batchv1.JobList
		if err := errors.Join(c.List(ctx, &jobs, client.InNamespace(namespace)), c.Get(ctx, key, b)); err != nil {
			return err
		}
		if len(jobs.Items) != 1 || jobs.Items[0].Name != "b-3" || b.Status.Finished != 3 || len(b.Status.Active) > 0 {
			return fmt.Errorf("%d jobs, status %+v", len(jobs.Items), b.Status)
		}
		return nil
	})
	must(t, c.Delete(ctx, b))
	yaretest.Eventually(t, func() error {
		if err := c.Get(ctx, key, b); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the batch is still there: %w", err)
		}
		return nil
	})
	yaretest.Eventually(t, func() error {
		var list corev1.EventList
		if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Message == "started b-3" }) {
			return errors.New("there is no event")
		}
		return nil
	})
}

func TestManagerThatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		role    string
		options manager.Options
		setup   func(manager.Manager) error
		want    string
	}{
		"election":     {batchRole, manager.Options{LeaderElection: true}, setUpBatches, "--leader-elect"},
		"no function":  {batchRole, manager.Options{}, nil, "is nil"},
		"other kind":   {"kind: Deployment", manager.Options{}, setUpBatches, `the kind "Deployment"`},
		"broken roles": {"a: [", manager.Options{}, setUpBatches, "read the roles"},
	} {
		if _, err := ctrl.Manager("batches", []byte(test.role), test.options, test.setup).Needs(); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "the manager batches") {
			t.Errorf("%s: %v", name, err)
		}
	}
	needs, err := ctrl.Manager("batches", []byte(batchRole+`
---
kind: Role
metadata: {name: leases, namespace: ops}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases, leases/status], verbs: [get]}]
`), manager.Options{}, setUpBatches).Needs()
	if err != nil || len(needs.Rules) != 5 || len(needs.Access) != 2 || needs.Access[1].Subresource != "status" || needs.Access[0].Namespaces[0] != "ops" {
		t.Errorf("the needs are %+v, %v", needs, err)
	}
}
