package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// The kinds of what a cluster does to the objects of a program by itself.
const (
	// JobExpired deletes the finished Jobs that have a ttlSecondsAfterFinished, as the TTL controller does when the time
	// has come (https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/).
	JobExpired Kind = "job-expired"
	// PodEvicted ends a Pod that the program has made, as a kubelet does whose node has no memory left. The Pod stays,
	// with the phase Failed (https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/).
	PodEvicted Kind = "pod-evicted"
	// QuotaFull lets a ResourceQuota refuse what the program creates in a step with 403, until the step has come to rest.
	// The user can still create the samples: their resources are not limited.
	QuotaFull Kind = "quota-full"
)

// FullQuotaName is the name of the ResourceQuota of [QuotaFull].
const FullQuotaName = "exploration-full"

const (
	// maxQuotaWait is how long a ResourceQuota may take to be in force.
	maxQuotaWait = 20 * time.Second
	// quotaPollInterval is the time between two looks at the quota.
	quotaPollInterval = 50 * time.Millisecond
)

// clusterChanges is the family of what a cluster does by itself.
type clusterChanges struct{ baseFamily }

func (clusterChanges) Describe() Description {
	return Description{Group: "cluster", Kinds: []Kind{JobExpired, PodEvicted, QuotaFull}, IsDefault: true}
}

// Plan plans one run in which all Jobs expire, one run for each Pod of the program, and one run in which the quota is
// full.
func (clusterChanges) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	plan := Plan{NotApplicable: make(map[Kind]string)}
	add := func(k Kind, all []Fault, reason string) {
		switch {
		case !in.has(k):
		case len(all) == 0:
			plan.NotApplicable[k] = reason
		default:
			plan.Runs = append(plan.Runs, newPlan(all).Runs...)
		}
	}
	var expired, evicted, full []Fault
	for _, o := range in.Objects {
		switch {
		case o.Resource == "pods":
			evicted = append(evicted, Fault{Kind: PodEvicted, Object: &o.Object})
		case o.Resource == "jobs.batch" && len(expired) == 0 && hasTTL(o.Content):
			expired = append(expired, Fault{Kind: JobExpired})
		}
	}
	var created []string
	for _, p := range in.writes() {
		isOfUser := slices.ContainsFunc(in.SampleObjects, func(o Object) bool { return o.Resource == p.Resource })
		isNew := in.Codes[p] == http.StatusCreated && p.Step == 0
		if isNew && !isOfUser && !slices.Contains(created, p.Resource) {
			created = append(created, p.Resource)
		}
	}
	if len(created) > 0 {
		full = []Fault{{Kind: QuotaFull, Resources: created}}
	}
	add(JobExpired, expired, "the program makes no Job with a ttlSecondsAfterFinished")
	add(PodEvicted, evicted, "the program makes no Pod")
	add(QuotaFull, full, "the program creates no object of a kind that the user does not create")
	return plan, nil
}

// hasTTL reports whether a Job goes by itself after it has finished.
func hasTTL(job map[string]any) bool {
	_, exists, _ := unstructured.NestedFieldNoCopy(job, "spec", "ttlSecondsAfterFinished")
	return exists
}

// BeforeStep makes the quota, and waits until it is in force.
func (clusterChanges) BeforeStep(ctx context.Context, run *Run, f Fault) error {
	if f.Kind != QuotaFull {
		return nil
	}
	run.RecordFault(InServer, fmt.Sprintf("a ResourceQuota allows no more %v", f.Resources))
	quotas := kube.Namespaced[corev1.ResourceQuota](run.Client().WithFieldManager(ForeignManager), run.Namespace)
	hard := make(corev1.ResourceList)
	for _, name := range f.Resources {
		hard[corev1.ResourceName("count/"+name)] = resource.MustParse("0")
	}
	_, err := quotas.Create(ctx,
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: FullQuotaName}, Spec: corev1.ResourceQuotaSpec{Hard: hard}})
	if err != nil {
		return err
	}
	for until := time.Now().Add(maxQuotaWait); ; {
		quota, err := quotas.Get(ctx, FullQuotaName)
		if err != nil {
			return err
		}
		if len(quota.Status.Hard) == len(hard) {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("the ResourceQuota %s/%s is not in force within %s", run.Namespace, FullQuotaName, maxQuotaWait)
		}
		if err := clock.SleepReal(ctx, quotaPollInterval); err != nil {
			return err
		}
	}
}

// AfterStep removes the quota, or does to the Jobs and Pods what the cluster does.
func (c clusterChanges) AfterStep(ctx context.Context, run *Run, f Fault) error {
	switch f.Kind {
	case QuotaFull:
		run.RecordFault(InServer, "the ResourceQuota is gone")
		return kube.Namespaced[corev1.ResourceQuota](run.Client().WithFieldManager(ForeignManager), run.Namespace).Delete(ctx,
			FullQuotaName)
	case JobExpired:
		return c.expireJobs(ctx, run, f)
	}
	return c.evictPod(ctx, run, f)
}

// expireJobs deletes the finished Jobs that have a time to live.
func (clusterChanges) expireJobs(ctx context.Context, run *Run, f Fault) error {
	jobs := kube.Namespaced[batchv1.Job](run.Client().WithFieldManager(ForeignManager), run.Namespace)
	all, err := jobs.List(ctx)
	if err != nil {
		return err
	}
	count := 0
	for _, job := range all {
		isFinished := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
		})
		if !isFinished || job.Spec.TTLSecondsAfterFinished == nil {
			continue
		}
		count++
		run.RecordFault(InServer, "the time to live of jobs.batch/"+job.Name+" has ended")
		err := jobs.Delete(ctx, job.Name, kube.Propagation(metav1.DeletePropagationBackground))
		if kube.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if count == 0 {
		run.RecordMissed(f)
	}
	return nil
}

// evictPod ends a Pod, which stays as failed.
func (clusterChanges) evictPod(ctx context.Context, run *Run, f Fault) error {
	pod, api, exists, err := run.Object(ctx, *f.Object)
	if err != nil {
		return err
	}
	if !exists {
		run.RecordMissed(f)
		return nil
	}
	run.RecordFault(InServer, f.String())
	_, err = api.For(run.Client().WithFieldManager(ForeignManager), run.Namespace).Status().Patch(ctx, pod.GetName(),
		kube.MergePatch(map[string]any{
			"status": map[string]any{"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
		}))
	if kube.IsNotFound(err) || isRefusedValue(err) {
		run.RecordMissed(f)
		return nil
	}
	return err
}
