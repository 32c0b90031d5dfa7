package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// cluster is the access of an exploration to its control plane, with an administrator's rights. It is a
// [faults.Cluster].
type cluster struct {
	client *kube.Client
	// resources are the namespaced resources of the server.
	resources []wire.Resource
}

// Client returns the client.
func (c *cluster) Client() *kube.Client { return c.client }

// APIOf returns the API of a kind in a namespace, for the user.
func (c *cluster) APIOf(kind schema.GroupVersionKind, namespace string) (kube.API[unstructured.Unstructured], error) {
	r, err := c.resourceOfKind(kind)
	return kube.Dynamic(c.client.WithFieldManager(userManager), r, namespace), err
}

// Definitions returns the API of CustomResourceDefinitions, for the user.
func (c *cluster) Definitions() kube.API[unstructured.Unstructured] {
	return kube.Dynamic(c.client.WithFieldManager(userManager), wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		},
		Plural: "customresourcedefinitions", ClusterScoped: true,
	}, "")
}

// resource returns the resource of a name with a group.
func (c *cluster) resource(name string) (wire.Resource, error) {
	for _, r := range c.resources {
		if r.String() == name {
			return r, nil
		}
	}
	return wire.Resource{}, fmt.Errorf("the server has no namespaced resource %q", name)
}

// resourceOfKind returns the resource of a kind.
func (c *cluster) resourceOfKind(kind schema.GroupVersionKind) (wire.Resource, error) {
	for _, r := range c.resources {
		if r.GroupKind() == kind.GroupKind() {
			r.GroupVersionKind = kind
			return r, nil
		}
	}
	return wire.Resource{}, fmt.Errorf(
		"the server has no namespaced kind %s: an exploration needs samples that live in namespaces, and their CRDs", kind)
}

// decode returns an object of a step, in a namespace.
func (c *cluster) decode(raw json.RawMessage, namespace string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("read a sample: %w", err)
	}
	object.SetNamespace(namespace)
	return object, nil
}

// find returns the object of a normalized name in a namespace, with the API of its kind. It reports whether the object
// exists.
func (c *cluster) find(
	ctx context.Context, o faults.Object, namespace string, names *history.Names,
) (*unstructured.Unstructured, kube.API[unstructured.Unstructured], bool, error) {
	var api kube.API[unstructured.Unstructured]
	resource, err := c.resource(o.Resource)
	if err != nil {
		return nil, api, false, err
	}
	api = kube.Dynamic(c.client, resource, namespace)
	all, err := api.List(ctx)
	if err != nil {
		return nil, api, false, err
	}
	i := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool { return names.Normalize(u.GetName()) == o.Name })
	if i < 0 {
		return nil, api, false, nil
	}
	return all[i], api, true, nil
}

// releaseLease releases the Lease of a name in a namespace, as a leader that ends in order does.
func (c *cluster) releaseLease(ctx context.Context, namespace, name string) error {
	resource, err := c.resource(proxy.Leases)
	if err != nil {
		return err
	}
	api := kube.Dynamic(c.client.WithFieldManager(faults.ForeignManager), resource, namespace)
	_, err = api.Patch(ctx, name,
		kube.MergePatch(map[string]any{"spec": map[string]any{"holderIdentity": "", "leaseDurationSeconds": 1}}))
	return kube.IgnoreNotFound(err)
}

// stepsOf returns the default steps of an exploration with these samples: the user applies the samples, and
// deletes them.
func (c *cluster) stepsOf(samples []json.RawMessage) ([]finding.Step, error) {
	steps := []finding.Step{{Name: "apply the samples", Apply: samples}, {Name: "delete the samples"}}
	for _, raw := range samples {
		object, err := c.objectOf(raw)
		if err != nil {
			return nil, err
		}
		steps[1].Delete = append(steps[1].Delete, object)
	}
	return steps, nil
}

// objectOf returns the resource and the name of an object of a step.
func (c *cluster) objectOf(raw json.RawMessage) (faults.Object, error) {
	object, err := c.decode(raw, "")
	if err != nil {
		return faults.Object{}, err
	}
	r, err := c.resourceOfKind(object.GroupVersionKind())
	return faults.Object{Resource: r.String(), Name: object.GetName()}, err
}

// namesOf returns the resources and names of objects. An object of an unknown kind is left out.
func (c *cluster) namesOf(all []json.RawMessage) map[faults.Object]bool {
	names := make(map[faults.Object]bool)
	for _, raw := range all {
		if object, err := c.objectOf(raw); err == nil {
			names[object] = true
		}
	}
	return names
}

// applies reports whether the user applies an object in a step.
func (c *cluster) applies(step finding.Step, o faults.Object) (bool, error) {
	for _, raw := range step.Apply {
		if object, err := c.objectOf(raw); err != nil || object == o {
			return err == nil, err
		}
	}
	return false, nil
}

// appliesKind reports whether the user applies an object of a resource in one of the steps.
func (c *cluster) appliesKind(steps []finding.Step, resource string) bool {
	for _, step := range steps {
		for _, raw := range step.Apply {
			if object, err := c.objectOf(raw); err == nil && object.Resource == resource {
				return true
			}
		}
	}
	return false
}

// appliedUntil returns the objects that the user has applied and not deleted up to a step, and a text. The text is
// equal for equal objects.
func (c *cluster) appliedUntil(steps []finding.Step, step int) (text string, objects []json.RawMessage, err error) {
	latest := make(map[faults.Object]json.RawMessage)
	for _, s := range steps[:step+1] {
		for _, raw := range s.Apply {
			object, err := c.objectOf(raw)
			if err != nil {
				return "", nil, err
			}
			latest[object] = raw
		}
		for _, o := range s.Delete {
			delete(latest, o)
		}
	}
	for _, o := range slices.SortedFunc(maps.Keys(latest),
		func(a, b faults.Object) int { return strings.Compare(a.String(), b.String()) }) {
		object, err := c.decode(latest[o], "")
		if err != nil {
			return "", nil, err
		}
		objects = append(objects, latest[o])
		text += string(marshalObject(withData(object))) + "\n"
	}
	return text, objects, nil
}
