package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

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

// conditionStatus returns True or False.
func conditionStatus(isTrue bool) corev1.ConditionStatus {
	if isTrue {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}
