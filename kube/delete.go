package kube

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DeleteOption changes how something is deleted.
type DeleteOption func(*metav1.DeleteOptions)

// OfUID deletes only this very object, and not another of the same name.
func RequireUID(uid types.UID) DeleteOption {
	return func(o *metav1.DeleteOptions) { preconditions(o).UID = &uid }
}

// OfVersion deletes only if the object has not changed since this resourceVersion.
func RequireResourceVersion(resourceVersion string) DeleteOption {
	return func(o *metav1.DeleteOptions) { preconditions(o).ResourceVersion = &resourceVersion }
}

func preconditions(o *metav1.DeleteOptions) *metav1.Preconditions {
	if o.Preconditions == nil {
		o.Preconditions = &metav1.Preconditions{}
	}
	return o.Preconditions
}

// Propagation says what becomes of the objects that the deleted one owns. Default: the
// server's, which for nearly all resources is to delete them in the background.
func Propagation(policy metav1.DeletionPropagation) DeleteOption {
	return func(o *metav1.DeleteOptions) { o.PropagationPolicy = &policy }
}

// GracePeriod is how long the object has to end by itself, rounded up to the second. Zero
// is at once, which for a Pod means without waiting for its node. Default: its own.
func GracePeriod(d time.Duration) DeleteOption {
	seconds := int64((d + time.Second - 1) / time.Second)
	return func(o *metav1.DeleteOptions) { o.GracePeriodSeconds = &seconds }
}

// DryRunDelete lets the server do all but delete.
func DryRunDelete() DeleteOption {
	return func(o *metav1.DeleteOptions) { o.DryRun = []string{metav1.DryRunAll} }
}

// Delete deletes by name. That it is gone already is an error: see [IsNotFound].
func (a API[T]) Delete(ctx context.Context, name string, options ...DeleteOption) error {
	if err := cmp.Or(a.one(VerbDelete, name), a.whole(VerbDelete, name)); err != nil {
		return err
	}
	r := a.request(VerbDelete, name)
	if err := deleteBody(r, options); err != nil {
		return err
	}
	_, err := a.client.Do(ctx, r)
	return err
}

// DeleteAll deletes all that match, one namespace at a time.
func (a API[T]) DeleteAll(ctx context.Context, selectors []Selector, options ...DeleteOption) error {
	streams, err := a.Streams(selectors...)
	if err = cmp.Or(err, a.whole(VerbDeleteCollection, "")); err != nil {
		return err
	}
	for _, s := range streams {
		if s.Namespace == "" && !a.resource.ClusterScoped {
			return fmt.Errorf("delete all %s: name a namespace: use kube.Namespaced", a.resource)
		}
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
		option(&o)
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

// Delete deletes obj: exactly this one if it has a UID. That it is gone already, or that
// another has taken its name, is no error.
func (c *Client) Delete(ctx context.Context, obj Object, options ...DeleteOption) error {
	t, err := typeOfLive(VerbDelete, obj)
	if err != nil {
		return err
	}
	if uid := obj.GetUID(); uid != "" {
		options = append([]DeleteOption{RequireUID(uid)}, options...)
	}
	a := makeAPI[metav1.PartialObjectMetadata](c, t.Resource, obj.GetNamespace(), Full, false, nil)
	err = a.Delete(ctx, obj.GetName(), options...)
	if IsNotFound(err) && !IsNoResource(err) || obj.GetUID() != "" && IsConflict(err) && otherUID(err) {
		return nil
	}
	return err
}

// otherUID tells the conflict over a uid from that over a resourceVersion. The server has
// two places that find it, each with words of its own; there is no other difference.
func otherUID(err error) bool {
	e, ok := AsError(err)
	return ok && (strings.Contains(e.Answer.Message, "UID in the precondition") ||
		strings.Contains(e.Answer.Message, "UID in precondition"))
}
