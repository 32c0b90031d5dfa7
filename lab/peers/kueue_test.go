package peers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	configv1 "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schedulercache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/metrics"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"

	"github.com/yare-go/yare/yaretest"
)

// registerMetrics registers the metrics of Kueue, which cannot be registered twice.
var registerMetrics = sync.OnceFunc(metrics.Register)

// setUpKueue adds the controllers and the scheduler of Kueue, as its main function does. It leaves out the webhooks and the
// controllers of jobs: their packages do not compile with the types of Kubernetes 1.37. The tests make the Workloads.
func setUpKueue(ctx context.Context, mgr manager.Manager) error {
	registerMetrics()
	config := new(configv1.Configuration)
	mgr.GetScheme().Default(config)
	if err := indexer.Setup(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	expected, cache := expectations.New(), schedulercache.New(mgr.GetClient())
	requeuer := qcache.NewRequeuer()
	if err := mgr.Add(requeuer); err != nil {
		return err
	}
	queues := qcache.NewManager(mgr.GetClient(), cache, requeuer, qcache.WithPreemptionExpectations(expected))
	if failed, err := core.SetupControllers(mgr, queues, cache, config, nil, expected, nil); err != nil {
		return fmt.Errorf("%s: %w", failed, err)
	}
	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)
	return mgr.Add(scheduler.New(queues, cache, mgr.GetClient(), mgr.GetEventRecorderFor("kueue-admission"),
		scheduler.WithPreemptionExpectations(expected)))
}

// queueOfTest is a queue of Kueue with a quota of CPU, in a namespace of a test. The names of all objects are that of the
// namespace.
type queueOfTest struct {
	client.Client
	namespace string
}

func newQueue(t *testing.T, c client.Client, cpu string) queueOfTest {
	q := queueOfTest{c, yaretest.Shared(t).Namespace(t)}
	flavor := &kueue.ResourceFlavor{
		ObjectMeta: metav1.ObjectMeta{Name: q.namespace},
		Spec:       kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"kubernetes.io/os": "linux"}},
	}
	queue := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: q.namespace},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO,
			Preemption: &kueue.ClusterQueuePreemption{
				ReclaimWithinCohort: kueue.PreemptionPolicyNever, WithinClusterQueue: kueue.PreemptionPolicyLowerPriority,
			},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{"cpu"},
				Flavors: []kueue.FlavorQuotas{{
					Name:      kueue.ResourceFlavorReference(q.namespace),
					Resources: []kueue.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse(cpu)}},
				}},
			}},
		},
	}
	local := &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: q.namespace, Name: q.namespace},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(q.namespace)},
	}
	must(t, c.Create(t.Context(), queue))
	must(t, c.Create(t.Context(), local))
	q.eventually(t, queue, func() error {
		return q.conditionIs(queue.Status.Conditions, kueue.ClusterQueueActive, metav1.ConditionFalse)
	})
	must(t, c.Create(t.Context(), flavor))
	q.eventually(t, queue, func() error {
		return q.conditionIs(queue.Status.Conditions, kueue.ClusterQueueActive, metav1.ConditionTrue)
	})
	return q
}

// eventually reads an object until check is satisfied with it.
func (q queueOfTest) eventually(t *testing.T, o client.Object, check func() error) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		if err := q.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		return check()
	})
}

func (q queueOfTest) conditionIs(conditions []metav1.Condition, name string, status metav1.ConditionStatus) error {
	if c := meta.FindStatusCondition(conditions, name); c == nil || c.Status != status {
		return fmt.Errorf("the condition %s is %+v", name, c)
	}
	return nil
}

// submit makes a Workload that waits for its admission.
func (q queueOfTest) submit(t *testing.T, name, cpu string, priority int32) *kueue.Workload {
	t.Helper()
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: q.namespace, Name: name},
		Spec: kueue.WorkloadSpec{
			QueueName: kueue.LocalQueueName(q.namespace), Priority: &priority,
			PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "main", Image: "example.com/main",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
				}},
			}}}},
		},
	}
	must(t, q.Create(t.Context(), w))
	return w
}

// becomes waits until a condition of a Workload is true.
func (q queueOfTest) becomes(t *testing.T, w *kueue.Workload, condition string) {
	t.Helper()
	q.eventually(t, w, func() error { return q.conditionIs(w.Status.Conditions, condition, metav1.ConditionTrue) })
}

// counts waits until the queue reports how many workloads it has.
func (q queueOfTest) counts(t *testing.T, pending, admitted int32) {
	t.Helper()
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: q.namespace}}
	local := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: q.namespace, Name: q.namespace}}
	q.eventually(t, queue, func() error {
		if s := queue.Status; s.PendingWorkloads != pending || s.AdmittedWorkloads != admitted {
			return fmt.Errorf("the status of the ClusterQueue is %+v", s)
		}
		return nil
	})
	q.eventually(t, local, func() error {
		if s := local.Status; s.PendingWorkloads != pending || s.AdmittedWorkloads != admitted {
			return fmt.Errorf("the status of the LocalQueue is %+v", s)
		}
		return nil
	})
}

func TestKueue(t *testing.T) {
	define(t, "sigs.k8s.io/kueue", "config/components/crd/bases")
	scheme := schemeOf(t, clientgoscheme.AddToScheme, kueue.AddToScheme, configv1.AddToScheme)
	o := operator{scheme: scheme, options: func(string) manager.Options { return manager.Options{} }, setUp: setUpKueue}
	forBoth(t, o, func(t *testing.T, c client.Client) {
		t.Run("a Workload is admitted, and its deletion frees the quota", func(t *testing.T) {
			q := newQueue(t, c, "1")
			first := q.submit(t, "first", "1", 0)
			q.becomes(t, first, kueue.WorkloadAdmitted)
			flavor := kueue.ResourceFlavorReference(q.namespace)
			if a := first.Status.Admission; a == nil || a.PodSetAssignments[0].Flavors["cpu"] != flavor {
				t.Errorf("the admission is %+v", a)
			}
			q.counts(t, 0, 1)
			second := q.submit(t, "second", "1", 0)
			q.counts(t, 1, 1)
			must(t, c.Delete(t.Context(), first))
			q.becomes(t, second, kueue.WorkloadAdmitted)
			q.counts(t, 0, 1)
		})
		t.Run("a larger quota admits a Workload that waits", func(t *testing.T) {
			q := newQueue(t, c, "1")
			large := q.submit(t, "large", "3", 0)
			q.counts(t, 1, 0)
			queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: q.namespace}}
			yaretest.Eventually(t, func() error {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(queue), queue); err != nil {
					return err
				}
				queue.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("4")
				return c.Update(t.Context(), queue)
			})
			q.becomes(t, large, kueue.WorkloadAdmitted)
			q.counts(t, 0, 1)
		})
		t.Run("a Workload of a higher priority preempts another one", func(t *testing.T) {
			q := newQueue(t, c, "1")
			low := q.submit(t, "low", "1", 0)
			q.becomes(t, low, kueue.WorkloadAdmitted)
			high := q.submit(t, "high", "1", 1000)
			q.becomes(t, low, kueue.WorkloadPreempted)
			must(t, c.Delete(t.Context(), low)) // its job has stopped
			q.becomes(t, high, kueue.WorkloadAdmitted)
			q.counts(t, 0, 1)
		})
		t.Run("a Workload that finishes frees its quota", func(t *testing.T) {
			q := newQueue(t, c, "1")
			first, second := q.submit(t, "first", "1", 1), q.submit(t, "second", "1", 0)
			q.becomes(t, first, kueue.WorkloadAdmitted)
			q.counts(t, 1, 1)
			before := client.MergeFrom(first.DeepCopy())
			meta.SetStatusCondition(&first.Status.Conditions, metav1.Condition{
				Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "its job is done",
			})
			must(t, c.Status().Patch(t.Context(), first, before))
			q.becomes(t, second, kueue.WorkloadAdmitted)
			q.counts(t, 0, 1)
		})
		t.Run("a flavor that is in use stays until its queue is gone", func(t *testing.T) {
			q := newQueue(t, c, "1")
			flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: q.namespace}}
			q.eventually(t, flavor, func() error {
				if len(flavor.Finalizers) == 0 {
					return fmt.Errorf("the flavor has no finalizer")
				}
				return nil
			})
			must(t, c.Delete(t.Context(), flavor))
			yaretest.Consistently(t, time.Second, func() error {
				return c.Get(t.Context(), client.ObjectKeyFromObject(flavor), flavor)
			})
			must(t, c.Delete(t.Context(), &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: q.namespace}}))
			yaretest.Eventually(t, func() error {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(flavor), flavor); !apierrors.IsNotFound(err) {
					return fmt.Errorf("the flavor: %v", err)
				}
				return nil
			})
		})
	})
}
