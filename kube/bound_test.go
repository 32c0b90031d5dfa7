package kube

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/yare-go/yare/internal/testkit/bound"
)

// Decoding an object allocates little but the object.
func TestAllocationsOfDecoding(t *testing.T) {
	data := []byte(`{"metadata":{"name":"a","namespace":"b","labels":{"app":"a"},"creationTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"manager":"m","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"main","image":"registry.example.com/some/image/with/a/long/name:1.2.3"}]}}}}`)
	decoder := newDecoder()
	bound.CheckAllocations(t, "an object", 13, func() {
		if !decoder.plans.Decode(data, new(appsv1.Deployment)) {
			t.Fatal("it was not decoded")
		}
	})
}
