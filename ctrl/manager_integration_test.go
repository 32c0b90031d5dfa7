package ctrl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/ctrl"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/clientgo"
	"github.com/yare-go/yare/operator"
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

func indexJobs(c crcluster.Cluster) error {
	byOwner := func(o client.Object) []string {
		owner := metav1.GetControllerOf(o)
		if owner == nil || owner.Kind != "Batch" {
			return nil
		}
		return []string{owner.Name}
	}
	return c.GetFieldIndexer().IndexField(context.Background(), new(batchv1.Job), ownerField, byOwner)
}

func newBatchReconciler(c crcluster.Cluster) (reconcile.Reconciler, error) {
	return &batchReconciler{c.GetClient(), c.GetScheme(), c.GetEventRecorder("batches")}, indexJobs(c)
}

func (r *batchReconciler) SetupWithManager(mgr manager.Manager) error {
	if err := indexJobs(mgr); err != nil {
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
		"engine": func(t *testing.T, namespace string) {
			part := ctrl.Controller[batch]([]byte(batchRole), batchScheme(), newBatchReconciler, controller.Owns[batchv1.Job]())
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

// A part of yare runs in a manager of controller-runtime, which elects the leader.
func TestPartInAManager(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	config := clientgo.ToREST(cluster.Config())
	namespace := cluster.Namespace(t)
	mgr, err := manager.New(config, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "parts",
		LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	})
	must(t, err)
	must(t, addParts(mgr, "parts", controller.New(func(ctx context.Context, s *corev1.Secret, c *kube.Client) (controller.Action, error) {
		_, err := kube.Apply(ctx, c, kube.OwnedBy(s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}))
		return controller.Done(), err
	}, controller.Owns[corev1.ConfigMap](controller.InNamespaces(namespace)), controller.Reconciled(controller.InNamespaces(namespace)))))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	c := cluster.Client(t)
	_, err = kube.Namespaced[corev1.Secret](c, namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
	must(t, err)
	yaretest.Eventually(t, func() error {
		_, err := kube.Get[corev1.ConfigMap](t.Context(), c, namespace, "s")
		return err
	})
}

// addParts adds parts of a program of yare to a manager, which starts them when its replica leads.
func addParts(mgr manager.Manager, name string, parts ...operator.Part) error {
	config, err := clientgo.ConfigFrom(mgr.GetConfig())
	if err != nil {
		return err
	}
	c, err := kube.NewClient(config)
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return operator.Run(ctx, c.WithFieldManager(name), parts...)
	}))
}

// everyReplica is what a manager runs on standbys too, such as webhooks.
type everyReplica chan struct{}

func (e everyReplica) NeedLeaderElection() bool { return false }

func (e everyReplica) Start(ctx context.Context) error {
	close(e)
	<-ctx.Done()
	return nil
}

// The webhooks of a manager answered on the leading replica alone.
func TestManagerOfAStandby(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	onEach, onLeader := make(everyReplica), make(chan struct{})
	part := ctrl.Manager("standby", nil, manager.Options{}, func(mgr manager.Manager) error {
		return errors.Join(mgr.Add(onEach), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			close(onLeader)
			<-ctx.Done()
			return nil
		})))
	})
	if needs, err := part.Needs(); err != nil || !needs.EveryReplica {
		t.Errorf("the needs are %+v, error %v", needs, err)
	}
	c := cluster.Client(t)
	elected := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- part.Start(ctx, &controller.Runtime{Client: c, Cache: cache.New(c), Log: slog.New(slog.DiscardHandler), Elected: elected})
	}()
	<-onEach
	select {
	case <-onLeader:
		t.Error("a standby runs what needs the election")
	default:
	}
	close(elected)
	<-onLeader
	cancel()
	must(t, <-ended)
}

// recordingReconciler records what it sees of its objects.
type recordingReconciler struct {
	client.Client
	seen    chan string
	results chan reconcile.Result
	errs    chan error
}

func (r *recordingReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var b batch
	switch err := r.Get(ctx, request.NamespacedName, &b); {
	case apierrors.IsNotFound(err):
		r.seen <- "gone"
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	case !b.DeletionTimestamp.IsZero():
		r.seen <- "deleted"
		b.Finalizers = nil
		return reconcile.Result{}, r.Update(ctx, &b)
	}
	applied := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "child"}}
	if err := controllerutil.SetControllerReference(&b, applied, r.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(applied)
	if err != nil {
		return reconcile.Result{}, err
	}
	delete(text["metadata"].(map[string]any), "creationTimestamp")
	err = r.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: text}), client.FieldOwner("batch.ctrl-test.yare.dev"), client.ForceOwnership)
	r.seen <- fmt.Sprintf("reconciled, foreign child %t", errors.Is(err, kube.ErrForeignChild))
	select {
	case result := <-r.results:
		return result, nil
	case err := <-r.errs:
		return reconcile.Result{}, err
	case <-ctx.Done():
		return reconcile.Result{}, ctx.Err()
	}
}

// On the engine of yare a reconciler sees what it saw before, its results count, and its writes pass the checks.
func TestReconcilerOnTheEngine(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[batch](t, cluster)
	namespace := cluster.Namespace(t)
	r := &recordingReconciler{seen: make(chan string, 10), results: make(chan reconcile.Result), errs: make(chan error)}
	part := ctrl.Controller[batch]([]byte(batchRole), batchScheme(), func(c crcluster.Cluster) (reconcile.Reconciler, error) {
		r.Client = c.GetClient()
		return r, nil
	}, controller.Owns[corev1.ConfigMap](), controller.FieldManager("batch.ctrl-test.yare.dev"))
	c := cluster.Client(t)
	configMaps, batches := kube.Namespaced[corev1.ConfigMap](c, namespace), kube.Namespaced[batch](c, namespace)
	_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child"}})
	must(t, err)
	yaretest.RunParts(t, cluster.InNamespaces(namespace), part)
	_, err = batches.Create(t.Context(), &batch{ObjectMeta: metav1.ObjectMeta{Name: "b", Finalizers: []string{batchFinalizer}}})
	must(t, err)
	next := func(want string) {
		t.Helper()
		if got := <-r.seen; got != want {
			t.Fatalf("the reconciler saw %q, want %q", got, want)
		}
	}
	next("reconciled, foreign child true")
	must(t, configMaps.Delete(t.Context(), "child"))
	r.results <- reconcile.Result{RequeueAfter: time.Millisecond}
	next("reconciled, foreign child false")
	r.results <- reconcile.Result{Requeue: true}
	next("reconciled, foreign child false")
	r.errs <- reconcile.TerminalError(errors.New("wrong"))
	_, err = batches.Patch(t.Context(), "b", kube.MergePatch(map[string]any{"spec": map[string]any{"runs": 4}}))
	must(t, err)
	next("reconciled, foreign child false")
	r.results <- reconcile.Result{}
	must(t, batches.Delete(t.Context(), "b"))
	next("deleted")
	next("gone")
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
	if _, err := ctrl.Controller[batch]([]byte("a: ["), nil, nil).Needs(); err == nil || !strings.Contains(err.Error(), "read the roles") || !strings.Contains(err.Error(), "is nil") {
		t.Errorf("a controller: %v", err)
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
