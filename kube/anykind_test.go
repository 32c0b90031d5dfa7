package kube_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
)

// The types that stand for any kind take a resource, and follow it in the form that they hold. Other
// types do not take one.
func TestTypesForAnyKind(t *testing.T) {
	t.Parallel()
	pods, err := kube.ResourceOf[corev1.Pod]()
	if err != nil {
		t.Fatal(err)
	}
	c := kube.NewClientFromHandler(nil)
	check := func(want kube.Representation, streams []kube.Stream, err error) {
		t.Helper()
		if err != nil || len(streams) != 1 || streams[0].Resource != pods || streams[0].Representation != want || streams[0].Namespace != "default" {
			t.Errorf("streams %v, %v", streams, err)
		}
	}
	streams, err := kube.OfKind[unstructured.Unstructured](c, pods, "default").Streams()
	check(kube.Full, streams, err)
	streams, err = kube.OfKind[metav1.PartialObjectMetadata](c, pods, "default").Streams()
	check(kube.MetadataOnly, streams, err)
	for _, test := range []struct {
		err  error
		want string
	}{
		{kube.OfKind[corev1.Pod](c, pods, "default").Err(), "v1.Pod is not a type for any kind"},
		{kube.OfKind[unstructured.Unstructured](c, kube.Resource{Plural: "things"}, "").Err(), "not complete"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("the error %v does not contain %q", test.err, test.want)
		}
	}
}
