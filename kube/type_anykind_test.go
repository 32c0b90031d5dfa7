package kube_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// The types that stand for any kind take a resource, and follow the resource in their own form.
// Other types do not take one.
func TestTypesForAnyKind(t *testing.T) {
	t.Parallel()
	pods, err := kube.ResourceOf[corev1.Pod]()
	if err != nil {
		t.Fatal(err)
	}
	c := kube.NewClientFromHandler(nil)
	for form, obj := range map[wire.Representation]kube.Object{
		wire.Full: new(unstructured.Unstructured), wire.MetadataOnly: new(metav1.PartialObjectMetadata),
	} {
		kind, err := kube.TypeOfKind(obj, pods)
		if err != nil {
			t.Fatal(err)
		}
		streams, err := kind.Streams(c)
		if err != nil || len(streams) != 1 || streams[0].Resource != pods || streams[0].Representation != form {
			t.Errorf("streams of %T: %v, %v", obj, streams, err)
		}
	}
	things, err := kube.TypeOfKind(new(unstructured.Unstructured), pods)
	if err != nil {
		t.Fatal(err)
	}
	_, ofOneKind := kube.TypeOfKind(new(corev1.Pod), pods)
	_, incomplete := kube.TypeOfKind(new(unstructured.Unstructured), wire.Resource{Plural: "things"})
	for _, test := range []struct {
		err  error
		want string
	}{
		{kube.APIOf[unstructured.Unstructured](c, things, "default").Err(), ""},
		{kube.APIOf[corev1.Pod](c, things, "default").Err(), "is not the type of v1.Pod"},
		{ofOneKind, "v1.Pod is not a type for any kind"},
		{incomplete, "not complete"},
	} {
		if test.want == "" && test.err != nil || test.want != "" && (test.err == nil || !strings.Contains(test.err.Error(), test.want)) {
			t.Errorf("the error is %v, want %q", test.err, test.want)
		}
	}
}
