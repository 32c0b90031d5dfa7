package lifecycle

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// setConditions sets the conditions that a kubelet owns.
func (h *History) setConditions(pod *corev1.Pod, status *corev1.PodStatus, ready bool, now time.Time) {
	set := func(kind corev1.PodConditionType, is bool, reason, message string) {
		setCondition(status, corev1.PodCondition{
			Type: kind, Status: truth(is), Reason: reason, Message: message, ObservedGeneration: pod.Generation,
		}, now)
	}
	set(corev1.PodReadyToStartContainers, h.phase != ended, "", "")

	initialized := h.phase != initializing && (h.phase != held || len(initContainers(pod)) == 0)
	switch {
	case !initialized:
		set(corev1.PodInitialized, false, "ContainersNotInitialized", "containers with incomplete status: "+names(initContainers(pod)))
	case status.Phase == corev1.PodSucceeded:
		set(corev1.PodInitialized, true, "PodCompleted", "")
	default:
		set(corev1.PodInitialized, true, "", "")
	}

	reason, message := "", ""
	switch {
	case ready:
	case status.Phase == corev1.PodSucceeded:
		reason = "PodCompleted"
	case status.Phase == corev1.PodFailed:
		reason = "PodFailed"
	default:
		reason, message = "ContainersNotReady", "containers with unready status: "+names(pod.Spec.Containers)
	}
	set(corev1.ContainersReady, ready, reason, message)
	if closed := closedGates(pod); ready && len(closed) > 0 {
		ready, reason = false, "ReadinessGatesNotReady"
		message = fmt.Sprintf("conditions that are not True: %s", strings.Join(closed, ", "))
	}
	set(corev1.PodReady, ready, reason, message)

	// The scheduler sets it, but not for a Pod that names its node.
	set(corev1.PodScheduled, true, "", "")
}

// closedGates returns the readiness gates of a Pod whose condition is not True. Others set
// those conditions.
func closedGates(pod *corev1.Pod) []string {
	open := map[corev1.PodConditionType]bool{}
	for _, c := range pod.Status.Conditions {
		open[c.Type] = c.Status == corev1.ConditionTrue
	}
	var closed []string
	for _, gate := range pod.Spec.ReadinessGates {
		if !open[gate.ConditionType] {
			closed = append(closed, string(gate.ConditionType))
		}
	}
	return closed
}

// setCondition sets a condition, which keeps its time unless its status changes.
func setCondition(status *corev1.PodStatus, c corev1.PodCondition, now time.Time) {
	c.LastTransitionTime = *stamp(now)
	for i, old := range status.Conditions {
		if old.Type != c.Type {
			continue
		}
		c.LastProbeTime = old.LastProbeTime
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		status.Conditions[i] = c
		return
	}
	status.Conditions = append(status.Conditions, c)
}

func truth(is bool) corev1.ConditionStatus {
	if is {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}
