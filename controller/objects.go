package controller

import (
	"context"

	"github.com/yare-go/yare/kube"
)

// objects reads and writes the objects of the reconciled kind. The object is nil if there is an error.
type objects interface {
	get(ctx context.Context, c *kube.Client, key kube.Key) (kube.Object, error)
	patch(ctx context.Context, c *kube.Client, key kube.Key, patch kube.Patch) (kube.Object, error)
	decode(c *kube.Client, object []byte) (kube.Object, error)
	// exists reports whether any object matches all selectors.
	exists(ctx context.Context, c *kube.Client, namespace string, selectors []kube.Selector) (bool, error)
}

// typedObjects are the objects of a Go type.
type typedObjects[T any] struct {
	// api has no client.
	api kube.API[T]
}

func (o typedObjects[T]) get(ctx context.Context, c *kube.Client, key kube.Key) (kube.Object, error) {
	return o.orError(o.api.For(c, key.Namespace).Get(ctx, key.Name))
}

func (o typedObjects[T]) patch(ctx context.Context, c *kube.Client, key kube.Key, patch kube.Patch) (kube.Object, error) {
	return o.orError(o.api.For(c, key.Namespace).Patch(ctx, key.Name, patch))
}

func (o typedObjects[T]) decode(c *kube.Client, object []byte) (kube.Object, error) {
	return o.orError(o.api.For(c, "").Decode(object))
}

func (o typedObjects[T]) exists(ctx context.Context, c *kube.Client, namespace string, selectors []kube.Selector) (bool, error) {
	matching, err := o.api.For(c, namespace).List(ctx, selectors...)
	return len(matching) > 0, err
}

// orError returns t as an object, or err.
func (o typedObjects[T]) orError(t *T, err error) (kube.Object, error) {
	if err != nil {
		return nil, err
	}
	return o.api.Object(t), nil
}
