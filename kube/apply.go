package kube

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// applier makes the requests that apply objects of a target.
type applier struct {
	target  target
	manager string
	pruner  *pruner
}

func newApplier(t target, c *Client) applier { return applier{t, c.manager, c.pruner} }

// request returns the apply of obj, or of its status if the target is the status.
func (a applier) request(obj Object, options []ApplyOption) (*Request, error) {
	t := a.target
	name := quoted(obj.GetNamespace(), obj.GetName())
	wasRead := ""
	switch {
	case t.subresource == "status":
		return a.statusRequest(obj, obj.GetResourceVersion(), options)
	case t.subresource != "":
		return nil, fmt.Errorf("apply %s/%s %s: only the whole object and its status can be applied: use Patch or Replace",
			t.resource, t.subresource, name)
	case len(obj.GetManagedFields()) > 0:
		wasRead = "managedFields"
	case obj.GetCreationTimestamp() != (metav1.Time{}):
		wasRead = "a creationTimestamp"
	}
	if wasRead != "" {
		return nil, fmt.Errorf("apply %s %s: the object was read, because it has %s: an apply of it would take over the fields of all managers: build a new object with the fields to declare",
			t.resource, name, wasRead)
	}
	body, err := a.pruner.applyBody(obj, t.resource, !t.hasStatusSubresource)
	return a.requestOf(body, err, obj, obj.GetResourceVersion(), options)
}

// statusRequest returns the apply of the status of obj to the version of the live object.
func (a applier) statusRequest(obj Object, resourceVersion string, options []ApplyOption) (*Request, error) {
	body, err := a.pruner.statusBody(obj, a.target.resource, resourceVersion)
	return a.requestOf(body, err, obj, resourceVersion, options)
}

// requestOf returns the apply of body, which was made of obj. err is why body could not be made.
func (a applier) requestOf(body []byte, err error, obj Object, resourceVersion string, options []ApplyOption) (*Request, error) {
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", a.target.resource, quoted(obj.GetNamespace(), obj.GetName()), err)
	}
	o := newWriteOptions(a.manager, options)
	r := a.target.request(VerbPatch, obj.GetName())
	r.Query, r.ContentType, r.Body, r.Adopt = o.query(), ContentApply, body, o.adopt
	if !o.noForce {
		r.Query.Set("force", "true")
	}
	r.Preconditions = Preconditions{UID: obj.GetUID(), ResourceVersion: resourceVersion}
	return r, nil
}
