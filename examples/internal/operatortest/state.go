package operatortest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/kube"
)

// state is an object and its children, without what differs from one run to the next.
type state map[string]map[string]any

// check returns the state of an object and its children, or an error that describes a difference from the
// state that they must have.
func (w *world) check(t *testing.T, name string, s State) (state, error) {
	t.Helper()
	object, err := w.api().Get(t.Context(), name)
	if err != nil {
		return nil, err
	}
	if object.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s is being deleted", name)
	}
	if w.Finalizer != "" && !slices.Contains(object.GetFinalizers(), w.Finalizer) {
		return nil, fmt.Errorf("%s has the finalizers %q", name, object.GetFinalizers())
	}
	if w.Ready != nil {
		if err := w.Ready(object, s); err != nil {
			return nil, err
		}
	}
	all := state{w.Resource.Kind: normalized(object)}
	for _, want := range parse(t, w.Children(name, s)) {
		child, err := w.apiOf(t, want).Get(t.Context(), want.GetName())
		if err != nil {
			return nil, err
		}
		if err := checkChild(object, want, child); err != nil {
			return nil, fmt.Errorf("%s %s: %w", child.GetKind(), child.GetName(), err)
		}
		all[child.GetKind()] = normalized(child)
	}
	return all, nil
}

// checkChild returns an error if a child is not as it must be.
func checkChild(owner, want, child *unstructured.Unstructured) error {
	if child.GetDeletionTimestamp() != nil {
		return fmt.Errorf("it is being deleted")
	}
	owners := child.GetOwnerReferences()
	if len(owners) != 1 || owners[0].UID != owner.GetUID() || owners[0].Controller == nil || !*owners[0].Controller {
		return fmt.Errorf("its owners are %+v, and should be the %s %s %s", owners, owner.GetKind(), owner.GetName(), owner.GetUID())
	}
	if diff := difference("", want.Object, child.Object); diff != "" {
		return fmt.Errorf("%s", diff)
	}
	if child.GetKind() != "Deployment" {
		return nil
	}
	return rolledOut(child)
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

// rolledOut returns an error unless all Pods of a Deployment have its template and are available.
func rolledOut(object *unstructured.Unstructured) error {
	var d appsv1.Deployment
	if err := convert(object, &d); err != nil {
		return err
	}
	n := int32(1)
	if d.Spec.Replicas != nil {
		n = *d.Spec.Replicas
	}
	if d.Status.ObservedGeneration != d.Generation || d.Status.Replicas != n || d.Status.UpdatedReplicas != n || d.Status.AvailableReplicas != n {
		return fmt.Errorf("of %d replicas there are %d, %d of them up to date, %d available",
			n, d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
	}
	return nil
}

func convert(from *unstructured.Unstructured, to any) error {
	data, err := kube.Marshal(from)
	if err != nil {
		return err
	}
	return kube.Unmarshal(data, to)
}

// normalized returns an object without the values that a server generates, and without the status
// of children, which others write.
func normalized(object *unstructured.Unstructured) map[string]any {
	o := object.DeepCopy().Object
	meta := o["metadata"].(map[string]any)
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "namespace"} {
		delete(meta, key)
	}
	owners, _ := meta["ownerReferences"].([]any)
	for _, owner := range owners {
		delete(owner.(map[string]any), "uid")
	}
	// The owners of fields are part of the state. Times are not, nor are the entries of the server's
	// own controllers.
	var managers []any
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		entry := e.(map[string]any)
		if entry["manager"] == "kube-controller-manager" {
			continue
		}
		delete(entry, "time")
		managers = append(managers, withoutUIDs(entry))
	}
	slices.SortFunc(managers, func(a, b any) int { return slices.Compare(text(a), text(b)) })
	meta["managedFields"] = managers
	spec, _ := o["spec"].(map[string]any)
	delete(spec, "clusterIP")
	delete(spec, "clusterIPs")
	status, _ := o["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		delete(c.(map[string]any), "lastTransitionTime")
		delete(c.(map[string]any), "lastUpdateTime")
	}
	if len(owners) > 0 {
		delete(o, "status") // of a child: the server's controllers write it
	}
	return o
}

// withoutUIDs returns a field manager's entry with the UIDs in it replaced.
func withoutUIDs(entry map[string]any) any {
	var walk func(any) any
	walk = func(v any) any {
		m, ok := v.(map[string]any)
		if !ok {
			return v
		}
		out := make(map[string]any, len(m))
		for key, value := range m {
			if len(key) > 9 && key[:9] == `k:{"uid":` {
				key = "the owner"
			}
			out[key] = walk(value)
		}
		return out
	}
	return walk(entry)
}

func text(v any) []byte {
	data, _ := json.Marshal(v)
	return data
}
