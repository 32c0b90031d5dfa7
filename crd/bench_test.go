package crd_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A Pod template is the largest type that a custom resource usually has.
func BenchmarkOfPodTemplate(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := held[corev1.PodTemplateSpec](); err != nil {
			b.Fatal(err)
		}
	}
}
