package main

import (
	"embed"

	"github.com/netresearch/go-cron"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

//go:embed types.go v2.go
var source embed.FS // the comments in them describe the resource to its users

// ConcurrencyPolicy selects what happens when a run is due while earlier Jobs are still active.
type ConcurrencyPolicy string

// These are the concurrency policies.
const (
	Allow   ConcurrencyPolicy = "Allow"
	Forbid  ConcurrencyPolicy = "Forbid"
	Replace ConcurrencyPolicy = "Replace"
)

// scheduleFields are the fields of a schedule.
// As in Kubernetes, a day matches by its number or by its weekday.
const scheduleFields = cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom | cron.Descriptor

// CronJobSpec is the desired state of the cron job.
type CronJobSpec struct {
	// When Jobs start, in cron format, such as "0 3 * * *" or "@hourly".
	Schedule string `json:"schedule" crd:"column,pattern='^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|@every [0-9a-zµ.]+|[^ @]+( +[^ @]+){4})$'"`
	Settings
}

// Settings are the fields that all versions have.
type Settings struct {
	// How many seconds after its time a missed run may still start. Without it, the latest missed
	// run always starts.
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty" crd:"minimum=0"`
	// Whether no further Jobs start. Active Jobs go on.
	Suspend bool `json:"suspend,omitempty" crd:"column"`
	// What happens when a run is due while earlier Jobs are active: Allow starts another Job,
	// Forbid skips the run, and Replace deletes the active Jobs first.
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty" crd:"enum=Allow|Forbid|Replace,default=Allow"`
	// The Job that is started.
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`
	// How many Jobs that succeeded are kept.
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty" crd:"minimum=0,default=3"`
	// How many Jobs that failed are kept.
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty" crd:"minimum=0,default=1"`
}

// CronJobStatus is the observed state of the cron job.
type CronJobStatus struct {
	// The Jobs that have not finished.
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// The time of the schedule for which a Job was started last.
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty" crd:"column=Last Schedule"`
	// Scheduled is true if the schedule is valid and not suspended.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Definition returns the definition of CronJobs of v1, which are stored.
func (CronJobSpec) Definition() kube.Definition {
	d := definition("v1")
	d.Storage = true
	return d
}

// definition returns what the definitions of all versions have.
func definition(version string) kube.Definition {
	return kube.Definition{
		Group: "batch.tutorial.example.com", Version: version, Kind: "CronJob", Source: source,
		Rules: []kube.Rule{{
			Rule:    "self.metadata.name.size() <= 52",
			Message: "metadata.name is longer than 52 characters: the names of its Jobs have 11 more, and at most 63",
		}},
		Tags: map[string]string{
			".spec.jobTemplate.spec.template.spec.containers": "required,minItems=1",
		},
	}
}

// CronJob starts Jobs by a schedule.
type CronJob = kube.CustomResource[CronJobSpec, CronJobStatus]
