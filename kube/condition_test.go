package kube_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// TestConditionHasTheTimeOfTheReconcile moves the time of a program between two transitions.
func TestConditionHasTheTimeOfTheReconcile(t *testing.T) {
	t.Parallel()
	moved := clock.New()
	ctx := clock.With(t.Context(), moved)
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	var conditions []metav1.Condition
	set := func(holds bool) metav1.Condition {
		kube.SetCondition(ctx, &conditions, owner, "Ready", holds, "Because", "")
		return conditions[0]
	}
	first := set(false)
	if err := moved.Advance(ctx, time.Hour, time.Minute); err != nil {
		t.Fatal(err)
	}
	if same := set(false); same != first {
		t.Errorf("nothing has changed, and %+v became %+v", first, same)
	}
	second := set(true)
	if d := second.LastTransitionTime.Sub(first.LastTransitionTime.Time); d < time.Hour || d > time.Hour+time.Minute {
		t.Errorf("an hour of the program passed between the transitions, and the times differ by %s", d)
	}
	if second.ObservedGeneration != 7 || second.Status != metav1.ConditionTrue || len(conditions) != 1 {
		t.Errorf("the conditions are %+v", conditions)
	}
}
