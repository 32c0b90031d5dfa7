package kubelet

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/yare-go/yare/controlplane/internal/kubelet/lifecycle"
)

// reportProblems writes an Event for each problem with a Pod's annotations, once per Pod and problem.
// A failure to write the Event is only logged.
func reportProblems(
	ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, r *podRecord, problems []lifecycle.Problem,
) {
	for _, problem := range problems {
		if r.reported[problem] {
			continue
		}
		if r.reported == nil {
			r.reported = map[lifecycle.Problem]bool{}
		}
		r.reported[problem] = true
		if err := writeEvent(ctx, client, pod, problem); err != nil {
			slog.Warn("writing an Event failed", "pod", pod.Namespace+"/"+pod.Name, "error", err)
		}
	}
}

func writeEvent(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, problem lifecycle.Problem) error {
	now := metav1.NewTime(time.Now())
	const component = "simulated-kubelet"
	_, err := client.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name + ".", Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name,
			UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Type: corev1.EventTypeWarning, Reason: "InvalidSimulation", Message: problem.String(),
		Source:              corev1.EventSource{Component: component, Host: pod.Spec.NodeName},
		ReportingController: component, ReportingInstance: pod.Spec.NodeName,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	return err
}
