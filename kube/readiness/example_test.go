package readiness_test

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/readiness"
)

// A condition of a parent follows the readiness of its child.
func ExampleOf() {
	report := func(r readiness.Readiness) (condition string, s readiness.State) {
		switch r.State {
		case readiness.Ready:
			return "Ready=True", r.State
		case readiness.Failed:
			return "Stalled=True", r.State
		case readiness.Progressing, readiness.Unknown:
		}
		return "Reconciling=True", r.State
	}
	job := &batchv1.Job{}
	fmt.Println(report(readiness.Of(job)))
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: "BackoffLimitExceeded"}}
	fmt.Println(report(readiness.Of(job)))
	fmt.Println(report(readiness.Of(&metav1.PartialObjectMetadata{})))
	// Output:
	// Reconciling=True Progressing
	// Stalled=True Failed
	// Reconciling=True Unknown
}
