package yaretest

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// WaitFor waits until check returns nil for the object of that name, and returns the object. When
// the timeout is over, as with [Eventually], it fails t with the last error.
//
//	yaretest.WaitFor(t, kube.Namespaced[appsv1.Deployment](client, namespace), "web", func(d *appsv1.Deployment) error {
//		if d.Status.AvailableReplicas != 3 {
//			return fmt.Errorf("%d of 3 replicas are available", d.Status.AvailableReplicas)
//		}
//		return nil
//	})
func WaitFor[T any](t testing.TB, api kube.API[T], name string, check func(*T) error) (object *T) {
	t.Helper()
	Eventually(t, func() (err error) {
		if object, err = api.Get(t.Context(), name); err != nil {
			return err
		}
		return check(object)
	})
	return object
}

// WaitForCondition waits until a condition of the object's status, such as Ready, is True and
// was observed at the object's present generation. It returns the object. It fails t when the
// timeout is over, as with [Eventually].
func WaitForCondition[T any](t testing.TB, api kube.API[T], name, condition string) *T {
	t.Helper()
	return WaitFor(t, api, name, func(object *T) error {
		return checkCondition(api.Object(object), condition)
	})
}

// WaitForReason waits until a condition of the object's status has a reason, such as InvalidSchedule,
// whether the condition is True or False, and was observed at the object's present generation. It
// returns the object. It fails t when the timeout is over, as with [Eventually].
func WaitForReason[T any](t testing.TB, api kube.API[T], name, condition, reason string) *T {
	t.Helper()
	return WaitFor(t, api, name, func(object *T) error {
		c, err := observedCondition(api.Object(object), condition)
		if err == nil && c.Reason != reason {
			err = fmt.Errorf("%s: the condition %s is %s (%s: %s), want the reason %s",
				name, condition, c.Status, c.Reason, c.Message, reason)
		}
		return err
	})
}

// checkCondition returns nil if a condition is True, and otherwise an error with the reason.
func checkCondition(object kube.Object, condition string) error {
	c, err := observedCondition(object, condition)
	if err == nil && c.Status != metav1.ConditionTrue {
		err = fmt.Errorf("%s: the condition %s is %s (%s: %s)", object.GetName(), condition, c.Status, c.Reason, c.Message)
	}
	return err
}

// observedCondition returns a condition that was observed at the object's present generation.
func observedCondition(object kube.Object, condition string) (metav1.Condition, error) {
	data, err := kube.Marshal(object)
	if err != nil {
		return metav1.Condition{}, err
	}
	var parsed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := kube.Unmarshal(data, &parsed); err != nil {
		return metav1.Condition{}, err
	}
	for _, c := range parsed.Status.Conditions {
		switch {
		case c.Type != condition:
		case c.ObservedGeneration == 0 || c.ObservedGeneration == object.GetGeneration(): // a built-in condition does not say
			return c, nil
		default:
			return metav1.Condition{}, fmt.Errorf("%s: the condition %s is %s (%s: %s), observed at generation %d of %d",
				object.GetName(), condition, c.Status, c.Reason, c.Message, c.ObservedGeneration, object.GetGeneration())
		}
	}
	return metav1.Condition{}, fmt.Errorf("%s: there is no condition %s", object.GetName(), condition)
}

// WaitUntilGone waits until no object of that name exists. It fails t when the timeout is over, as
// with [Eventually].
func WaitUntilGone[T any](t testing.TB, api kube.API[T], name string) {
	t.Helper()
	Eventually(t, func() error {
		object, err := api.Get(t.Context(), name)
		switch {
		case kube.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%s %s is still there, with the finalizers %q",
			api.Resource(), name, api.Object(object).GetFinalizers())
	})
}
