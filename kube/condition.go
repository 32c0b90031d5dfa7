package kube

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
)

// SetCondition sets the condition of that type, by the Kubernetes API conventions. Its status is
// True if holds is true, else False. The time of the last transition stays unless the status
// changes, so that a status comes to rest. The condition records the generation of owner that it
// was observed at. The reason must be one word in CamelCase, and not empty. The message is for
// people.
//
// Set a condition once in a reconcile: a condition that is set to true and then to false has had a
// transition each time, and never comes to rest. The time is the time of the reconcile whose context ctx is, so a test
// can move it. Outside of a reconcile it is the real time.
func SetCondition(ctx context.Context, conditions *[]metav1.Condition, owner Object, conditionType string, holds bool, reason, message string) {
	now := metav1.Condition{
		Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: owner.GetGeneration(),
		LastTransitionTime: metav1.NewTime(clock.From(ctx).Now().Truncate(time.Second)), // what JSON keeps
	}
	if holds {
		now.Status = metav1.ConditionTrue
	}
	for i, before := range *conditions {
		if before.Type != conditionType {
			continue
		}
		if before.Status == now.Status {
			now.LastTransitionTime = before.LastTransitionTime
		}
		(*conditions)[i] = now
		return
	}
	*conditions = append(*conditions, now)
}
