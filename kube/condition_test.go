package kube_test

import (
	"strings"
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

// Authors compared conditions by hand to find out whether something had changed, and the pointers that they kept changed
// too.
func TestConditionReportsChanges(t *testing.T) {
	t.Parallel()
	var conditions []metav1.Condition
	owner := &corev1.Pod{}
	for _, step := range []struct {
		generation int64
		holds      bool
		message    string
		want       bool
	}{{1, false, "no", true}, {1, false, "no", false}, {1, false, "not yet", true}, {2, false, "not yet", true}, {2, true, "not yet", true}, {2, true, "not yet", false}} {
		owner.Generation = step.generation
		if got := kube.SetCondition(t.Context(), &conditions, owner, "Ready", step.holds, "Because", step.message); got != step.want {
			t.Errorf("%+v: reported %t", step, got)
		}
	}
}

// Bug: a message of more than 32,768 bytes, such as an error with a log in it, made the server refuse the whole status.
func TestLongMessageOfACondition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ message, want string }{
		"short":                 {"it failed", "it failed"},
		"as long as possible":   {strings.Repeat("a", 32768), strings.Repeat("a", 32768)},
		"a byte longer":         {strings.Repeat("a", 32769), strings.Repeat("a", 32765) + "…"},
		"runes of two bytes":    {strings.Repeat("é", 20000), strings.Repeat("é", 16382) + "…"},
		"runes of four bytes":   {strings.Repeat("😀", 10000), strings.Repeat("😀", 8191) + "…"},
		"no UTF-8":              {"it failed: \xff\xfe", "it failed: \uFFFD"},
		"much that is no UTF-8": {strings.Repeat("a\xff", 16384), strings.Repeat("a\uFFFD", 8191) + "a…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var conditions []metav1.Condition
			kube.SetCondition(t.Context(), &conditions, &corev1.Pod{}, "Ready", false, "Failed", c.message)
			if got := conditions[0].Message; got != c.want || len(got) > 32768 {
				t.Errorf("the message has %d bytes and ends with %q, want %d bytes", len(got), got[max(0, len(got)-8):], len(c.want))
			}
		})
	}
}
