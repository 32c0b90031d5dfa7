package explore

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/kube"
)

// resourceName returns the name of a resource with its group, such as deployments.apps.
func resourceName(r kube.Resource) string { return r.GroupResource().String() }

// resource returns the resource of a name with a group.
func (e *explorer) resource(name string) (kube.Resource, error) {
	for _, r := range e.resources {
		if resourceName(r) == name {
			return r, nil
		}
	}
	return kube.Resource{}, fmt.Errorf("the server has no namespaced resource %q", name)
}

// apiOf returns the API of a kind in a namespace.
func (e *explorer) apiOf(kind schema.GroupVersionKind, namespace string) (kube.API[unstructured.Unstructured], error) {
	for _, r := range e.resources {
		if r.GroupVersionKind == kind || r.GroupKind() == kind.GroupKind() {
			r.GroupVersionKind = kind
			return kube.Dynamic(e.client, r, namespace), nil
		}
	}
	return kube.API[unstructured.Unstructured]{}, fmt.Errorf("the server has no namespaced kind %s: an exploration needs samples that live in namespaces, and their CRDs", kind)
}

// decode returns an object of a step, in a namespace.
func (e *explorer) decode(raw json.RawMessage, namespace string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("read a sample: %w", err)
	}
	object.SetNamespace(namespace)
	return object, nil
}

// delete deletes an object of the user.
func (e *explorer) delete(ctx context.Context, o schedule.Object, namespace string) error {
	r, err := e.resource(o.Resource)
	if err != nil {
		return err
	}
	return kube.Dynamic(e.client, r, namespace).Delete(ctx, o.Name)
}

// stepsOf returns the default steps of an exploration with these samples: the user applies the samples, and
// deletes them.
func (e *explorer) stepsOf(samples []json.RawMessage) ([]schedule.Step, error) {
	steps := []schedule.Step{{Name: "apply the samples", Apply: samples}, {Name: "delete the samples"}}
	for _, raw := range samples {
		object, err := e.decode(raw, "")
		if err != nil {
			return nil, err
		}
		api, err := e.apiOf(object.GroupVersionKind(), "")
		if err != nil {
			return nil, err
		}
		steps[1].Delete = append(steps[1].Delete, schedule.Object{Resource: resourceName(api.Resource()), Name: object.GetName()})
	}
	return steps, nil
}
