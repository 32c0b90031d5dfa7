package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube/wire"
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

// deleteObject deletes the object of that name.
func deleteObject(ctx context.Context, h wire.Handler, t target, name string, options []DeleteOption) error {
	if err := cmp.Or(t.requireName(wire.VerbDelete, name), t.rejectSubresource(wire.VerbDelete, name)); err != nil {
		return err
	}
	return sendDelete(ctx, h, t.request(wire.VerbDelete, name), options)
}

// deleteAll deletes the objects of t that selectors select. See [API.DeleteAll].
func deleteAll(ctx context.Context, c *Client, t target, selectors []Selector, options []DeleteOption) error {
	streams, err := t.streams(c, selectors)
	if err = cmp.Or(err, t.rejectSubresource(wire.VerbDeleteCollection, "")); err != nil {
		return err
	}
	for _, s := range streams {
		switch {
		case s.Namespace == "" && !t.resource.ClusterScoped:
			return fmt.Errorf("delete all %s: the namespace is missing: use kube.Namespaced", t.resource)
		case s.LabelSelector == "" && s.FieldSelector == "" &&
			!slices.ContainsFunc(selectors, func(s Selector) bool { return s.isEverything }):
			return fmt.Errorf("delete all %s: no selector narrows it: select with kube.Everything to delete all of them",
				t.resource)
		}
	}
	for _, s := range streams {
		r := s.Request(wire.VerbDeleteCollection)
		r.Representation = wire.Full
		if err := sendDelete(ctx, c, r, options); err != nil {
			return err
		}
	}
	return nil
}

// sendDelete sends a deletion with options.
func sendDelete(ctx context.Context, h wire.Handler, r *wire.Request, options []DeleteOption) error {
	if len(options) > 0 {
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
	}
	_, err := h.Do(ctx, r)
	return err
}
