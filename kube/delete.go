package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DeleteOption changes how something is deleted. [DryRun] is a DeleteOption too.
type DeleteOption interface{ changeDelete(*metav1.DeleteOptions) }

type deleteOption func(*metav1.DeleteOptions)

func (f deleteOption) changeDelete(o *metav1.DeleteOptions) { f(o) }

// RequireUID deletes only the object that has this uid. For another object of its name the deletion
// fails: see [IsUIDConflict].
func RequireUID(uid types.UID) DeleteOption {
	return deleteOption(func(o *metav1.DeleteOptions) { preconditions(o).UID = &uid })
}

// RequireResourceVersion deletes the object only if it has not changed since this resourceVersion.
// Otherwise the deletion fails: see [IsConflict].
func RequireResourceVersion(resourceVersion string) DeleteOption {
	return deleteOption(func(o *metav1.DeleteOptions) { preconditions(o).ResourceVersion = &resourceVersion })
}

func preconditions(o *metav1.DeleteOptions) *metav1.Preconditions {
	if o.Preconditions == nil {
		o.Preconditions = &metav1.Preconditions{}
	}
	return o.Preconditions
}

// Propagation sets what happens to the objects that the deleted object owns. Default: the default of
// the server, which for nearly all resources is to delete them in the background. The exception is
// Job: by default its Pods stay.
func Propagation(policy metav1.DeletionPropagation) DeleteOption {
	return deleteOption(func(o *metav1.DeleteOptions) { o.PropagationPolicy = &policy })
}

// GracePeriod sets how long the object has to end by itself, rounded up to the second. Zero
// means at once, which for a Pod means without waiting for its node. Default: the grace period of
// the object.
func GracePeriod(d time.Duration) DeleteOption {
	seconds := int64((d + time.Second - 1) / time.Second)
	return deleteOption(func(o *metav1.DeleteOptions) { o.GracePeriodSeconds = &seconds })
}

// Delete deletes the object of that name. If there is no such object, [IsNotFound] reports the error,
// and [IgnoreNotFound] drops the error.
func (a API[T]) Delete(ctx context.Context, name string, options ...DeleteOption) error {
	return a.delete(ctx, name, options)
}

func (a resourceView) delete(ctx context.Context, name string, options []DeleteOption) error {
	if err := cmp.Or(a.requireName(VerbDelete, name), a.rejectSubresource(VerbDelete, name)); err != nil {
		return err
	}
	r := a.request(VerbDelete, name)
	if err := deleteBody(r, options); err != nil {
		return err
	}
	_, err := a.client.Do(ctx, r)
	return err
}

// DeleteAll deletes all objects that match, one namespace at a time. The first error ends DeleteAll.
// The namespaces must be named, by [Namespaced] or [Client.InNamespaces], unless T is cluster-scoped. The
// selectors must select by labels or fields; [Everything] deletes all objects of the namespaces.
func (a API[T]) DeleteAll(ctx context.Context, selectors []Selector, options ...DeleteOption) error {
	streams, err := a.Streams(selectors...)
	if err = cmp.Or(err, a.rejectSubresource(VerbDeleteCollection, "")); err != nil {
		return err
	}
	for _, s := range streams {
		switch {
		case s.Namespace == "" && !a.resource.ClusterScoped:
			return fmt.Errorf("delete all %s: the namespace is missing: use kube.Namespaced", a.resource)
		case s.LabelSelector == "" && s.FieldSelector == "" && !slices.ContainsFunc(selectors, func(s Selector) bool { return s.everything }):
			return fmt.Errorf("delete all %s: no selector narrows it: select with kube.Everything to delete all of them", a.resource)
		}
	}
	for _, s := range streams {
		r := s.Request(VerbDeleteCollection)
		r.Representation = Full
		if err := deleteBody(r, options); err != nil {
			return err
		}
		if _, err := a.client.Do(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func deleteBody(r *Request, options []DeleteOption) error {
	if len(options) == 0 {
		return nil
	}
	o := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	for _, option := range options {
		option.changeDelete(&o)
	}
	if p := o.Preconditions; p != nil {
		if p.UID != nil {
			r.Preconditions.UID = *p.UID
		}
		if p.ResourceVersion != nil {
			r.Preconditions.ResourceVersion = *p.ResourceVersion
		}
	}
	body, err := Marshal(o)
	if err != nil {
		return fmt.Errorf("encode the options of a delete: %w", err)
	}
	r.Body = body
	return nil
}

// Delete deletes obj. If obj has a uid, only the object of that uid is deleted; otherwise the object
// of its name is deleted. If the object is gone already, [IgnoreNotFound] drops the error: [IsNotFound]
// reports the error or, if another object has the name, [IsUIDConflict] does.
func (c *Client) Delete(ctx context.Context, obj Object, options ...DeleteOption) error {
	t, err := typeOfLive(VerbDelete, obj)
	if err != nil {
		return err
	}
	if uid := obj.GetUID(); uid != "" {
		options = append([]DeleteOption{RequireUID(uid)}, options...)
	}
	a := newResourceView(c, t.Resource, obj.GetNamespace(), Full, false, nil)
	return a.delete(ctx, obj.GetName(), options)
}
