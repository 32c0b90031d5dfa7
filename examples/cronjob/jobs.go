package main

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// setLabels adds the labels of the Jobs of c to the labels of the template.
func setLabels(job *batchv1.Job, c *CronJob) {
	metav1.SetMetaDataLabel(&job.ObjectMeta, "app.kubernetes.io/name", "cronjob")
	metav1.SetMetaDataLabel(&job.ObjectMeta, "app.kubernetes.io/instance", c.Name)
	metav1.SetMetaDataLabel(&job.ObjectMeta, "app.kubernetes.io/managed-by", "cronjob-operator")
}

// deleteJobs deletes Jobs and their Pods. The Jobs may be deleted already.
func deleteJobs(ctx context.Context, client *kube.Client, jobs []*batchv1.Job) error {
	for _, j := range jobs {
		err := client.Delete(ctx, j, kube.Propagation(metav1.DeletePropagationBackground))
		if kube.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// jobsIn returns the Jobs that are in a state.
func jobsIn(state batchv1.JobConditionType, jobs []*batchv1.Job) []*batchv1.Job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *batchv1.Job) bool { return stateOf(j) != state })
}

// stateOf returns JobComplete or JobFailed for a finished Job, and active for any other.
func stateOf(j *batchv1.Job) batchv1.JobConditionType {
	for _, condition := range j.Status.Conditions {
		if (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) &&
			condition.Status == corev1.ConditionTrue {
			return condition.Type
		}
	}
	return active
}
