package operatortest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
)

// checkChild returns an error unless a child belongs to owner and has all values of want.
func checkChild(owner, want, child *unstructured.Unstructured) error {
	if child.GetDeletionTimestamp() != nil {
		return fmt.Errorf("it is being deleted")
	}
	owners := child.GetOwnerReferences()
	if len(owners) != 1 || owners[0].UID != owner.GetUID() || owners[0].Controller == nil || !*owners[0].Controller {
		return fmt.Errorf("its owners are %+v, and should be the %s %s %s",
			owners, owner.GetKind(), owner.GetName(), owner.GetUID())
	}
	if diff := difference("", want.Object, child.Object); diff != "" {
		return fmt.Errorf("%s", diff)
	}
	if child.GetKind() != "Deployment" {
		return nil
	}
	return checkRolledOut(child)
}

// difference describes a value of want that is not in got. It returns "" if there is no difference.
func difference(path string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		values, _ := got.(map[string]any)
		for key, value := range want {
			if diff := difference(path+"."+key, value, values[key]); diff != "" {
				return diff
			}
		}
		return ""
	case []any:
		values, _ := got.([]any)
		if len(values) != len(want) {
			return fmt.Sprintf("%s has %d elements in place of %d", path, len(values), len(want))
		}
		for i := range want {
			if diff := difference(fmt.Sprintf("%s[%d]", path, i), want[i], values[i]); diff != "" {
				return diff
			}
		}
		return ""
	default:
		if cmp.Equal(want, got) {
			return ""
		}
		return fmt.Sprintf("%s is %v in place of %v", path, got, want)
	}
}

// checkRolledOut returns an error unless all Pods of a Deployment have its template and are available.
func checkRolledOut(object *unstructured.Unstructured) error {
	var d appsv1.Deployment
	if err := decodeObject(object, &d); err != nil {
		return err
	}
	n := int32(1)
	if d.Spec.Replicas != nil {
		n = *d.Spec.Replicas
	}
	if d.Status.ObservedGeneration != d.Generation || d.Status.Replicas != n || d.Status.UpdatedReplicas != n ||
		d.Status.AvailableReplicas != n {
		return fmt.Errorf("of %d replicas there are %d, %d of them up to date, %d available",
			n, d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
	}
	return nil
}

// decodeObject decodes an object into a value of its Go type.
func decodeObject(from *unstructured.Unstructured, to any) error {
	data, err := kube.Marshal(from)
	if err != nil {
		return err
	}
	return kube.Unmarshal(data, to)
}
