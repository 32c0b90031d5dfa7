// Command cronjob runs the CronJob operator of the kubebuilder book: Jobs that start by a schedule.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/netresearch/go-cron"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/operator/livepage"
	"github.com/yare-go/yare/operator/webhook"
)

// scheduledAt is the annotation of a Job with the time of the schedule that the Job is for.
const scheduledAt = "batch.tutorial.example.com/scheduled-at"

// active is the state of a Job that has not finished.
const active batchv1.JobConditionType = ""

func main() { operator.Main(append(parts(), livepage.New())...) }

func parts() []operator.Part {
	return []operator.Part{
		controller.New(reconcile, controller.Owns[batchv1.Job](controller.WriteVerbs(wire.VerbCreate, wire.VerbDelete))),
		webhook.Validate(validate), webhook.Default(setDefaults), conversion.Between(toV2, toV1),
	}
}

// validate refuses a schedule that a schema cannot refuse: one that does not parse, or that has no next time.
func validate(_ context.Context, _, c *CronJob, _ *kube.Client) error {
	if _, err := parseSchedule(c, time.Now()); err != nil {
		return field.Invalid(field.NewPath("spec", "schedule"), c.Spec.Schedule, err.Error())
	}
	return nil
}

// setDefaults sets what the tags of CronJobSpec cannot set, because the field is that of another type. The Pods of a Job
// need a restart policy, and its default in other Pods is refused.
func setDefaults(_ context.Context, c *CronJob) {
	if pod := &c.Spec.JobTemplate.Spec.Template.Spec; pod.RestartPolicy == "" {
		pod.RestartPolicy = corev1.RestartPolicyOnFailure
	}
}

// parseSchedule returns the schedule of c, or an error if the schedule has no time after now.
func parseSchedule(c *CronJob, now time.Time) (cron.Schedule, error) {
	schedule, err := cron.MustNewParser(scheduleFields).Parse(c.Spec.Schedule)
	if err == nil && schedule.Next(now).IsZero() {
		err = fmt.Errorf("the schedule %q has no next time", c.Spec.Schedule)
	}
	return schedule, err
}

func reconcile(ctx context.Context, c *CronJob, client *kube.Client) (controller.Action, error) {
	jobs, err := kube.List[batchv1.Job](ctx, client, c.Namespace, kube.OwnerIs(c))
	if err != nil {
		return controller.Done(), err
	}
	now, action := controller.Now(ctx), controller.Done()
	schedule, err := parseSchedule(c, now)
	switch {
	case err != nil: // only a change of the schedule helps
		kube.SetCondition(ctx, &c.Status.Conditions, c, "Scheduled", false, "InvalidSchedule", err.Error())
	case c.Spec.Suspend:
		kube.SetCondition(ctx, &c.Status.Conditions, c, "Scheduled", false, "Suspended", "spec.suspend is true")
	default:
		kube.SetCondition(ctx, &c.Status.Conditions, c, "Scheduled", true, "Valid", "Jobs start by the schedule")
		action = controller.RequeueAfter(schedule.Next(now).Sub(now))
		if jobs, err = startDue(ctx, c, client, jobs, latestDue(c, jobs, schedule, now)); err != nil {
			return action, err
		}
	}
	// The status is recorded before old Jobs are deleted: these Jobs prove that their runs have started.
	if last := lastScheduled(c, jobs); !last.IsZero() {
		c.Status.LastScheduleTime = &metav1.Time{Time: last}
	}
	c.Status.Active = nil
	for _, j := range jobsIn(active, jobs) {
		c.Status.Active = append(c.Status.Active,
			corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: j.Namespace, Name: j.Name, UID: j.UID})
	}
	if err := client.ApplyStatus(ctx, c); err != nil {
		return action, err
	}
	return action, deleteOld(ctx, c, client, jobs)
}

// startDue starts the run of a time, unless the concurrency policy forbids it. It returns the Jobs that exist then.
func startDue(ctx context.Context, c *CronJob, client *kube.Client, jobs []*batchv1.Job, due time.Time) ([]*batchv1.Job, error) {
	if due.IsZero() || c.Spec.ConcurrencyPolicy == Forbid && len(jobsIn(active, jobs)) > 0 {
		return jobs, nil
	}
	if c.Spec.ConcurrencyPolicy == Replace {
		if err := deleteJobs(ctx, client, jobsIn(active, jobs)); err != nil {
			return nil, err
		}
		jobs = slices.DeleteFunc(jobs, func(j *batchv1.Job) bool { return stateOf(j) == active })
	}
	template, name := c.Spec.JobTemplate, fmt.Sprintf("%s-%d", c.Name, due.Unix()) // no run starts twice
	meta := metav1.ObjectMeta{Namespace: c.Namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations}
	job := &batchv1.Job{ObjectMeta: meta, Spec: template.Spec}
	setLabels(job, c)
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, scheduledAt, due.UTC().Format(time.RFC3339))
	created, err := kube.Create(ctx, client, kube.OwnedBy(c, job))
	if err != nil {
		return nil, err
	}
	slog.InfoContext(ctx, "started", "job", created.Name)
	return append(jobs, created), nil
}

// latestDue returns the latest time before now that is due, within the deadline and without a Job, or the zero time.
func latestDue(c *CronJob, jobs []*batchv1.Job, schedule cron.Schedule, now time.Time) (due time.Time) {
	from := slices.MaxFunc([]time.Time{c.CreationTimestamp.Time, lastScheduled(c, jobs)}, time.Time.Compare)
	if seconds := c.Spec.StartingDeadlineSeconds; seconds != nil {
		from = slices.MaxFunc([]time.Time{from, now.Add(-time.Duration(*seconds) * time.Second)}, time.Time.Compare)
	}
	for t := schedule.Next(from); !t.IsZero() && !t.After(now); t = schedule.Next(t) {
		due = t
	}
	return due
}

// lastScheduled returns the latest time for which a Job was started, by the status and by the Jobs.
func lastScheduled(c *CronJob, jobs []*batchv1.Job) time.Time {
	var last metav1.Time
	if c.Status.LastScheduleTime != nil {
		last = *c.Status.LastScheduleTime
	}
	for _, j := range jobs {
		if t, err := time.Parse(time.RFC3339, j.Annotations[scheduledAt]); err == nil && t.After(last.Time) {
			last.Time = t
		}
	}
	return last.Time
}

// deleteOld deletes the oldest finished Jobs beyond the limits.
func deleteOld(ctx context.Context, c *CronJob, client *kube.Client, jobs []*batchv1.Job) error {
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		return cmp.Compare(b.Annotations[scheduledAt], a.Annotations[scheduledAt])
	})
	succeeded, failed := jobsIn(batchv1.JobComplete, jobs), jobsIn(batchv1.JobFailed, jobs)
	old := slices.Concat(succeeded[min(len(succeeded), int(*c.Spec.SuccessfulJobsHistoryLimit)):],
		failed[min(len(failed), int(*c.Spec.FailedJobsHistoryLimit)):])
	return deleteJobs(ctx, client, old)
}
