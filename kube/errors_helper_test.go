package kube

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// hasReason returns a function that reports whether an error has the reason.
func hasReason(reason metav1.StatusReason) func(error) bool {
	return func(err error) bool { return HasReason(err, reason) }
}
