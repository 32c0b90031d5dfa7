//go:build go1.27

package kube

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The methods below are those that Client gets once Go 1.27 is the oldest supported release. This file keeps their
// names free, and proves that they can be added beside the functions.

func (c *Client) Get[T any, P ObjectOf[T]](ctx context.Context, namespace, name string) (*T, error) {
	return Get[T, P](ctx, c, namespace, name)
}

func (c *Client) List[T any, P ObjectOf[T]](ctx context.Context, namespace string, selectors ...Selector) ([]*T, error) {
	return List[T, P](ctx, c, namespace, selectors...)
}

func (c *Client) Apply[O Object](ctx context.Context, o O, options ...ApplyOption) (O, error) {
	return Apply(ctx, c, o, options...)
}

func (c *Client) Create[O Object](ctx context.Context, o O, options ...WriteOption) (O, error) {
	return Create(ctx, c, o, options...)
}

func TestMethodsWithTypeParameters(t *testing.T) {
	t.Parallel()
	c := NewClientFromHandler(&kindServer{})
	m, err := c.Get[corev1.ConfigMap](t.Context(), "ns", "m")
	if err != nil || m.Data["answer"] != "yes" {
		t.Errorf("Get: %+v, %v", m, err)
	}
	if _, err := c.Apply(t.Context(), &corev1.ConfigMap{ObjectMeta: named("ns", "m")}); err != nil {
		t.Errorf("Apply: %v", err)
	}
	var o Object = &corev1.ConfigMap{ObjectMeta: named("ns", "m")}
	if _, err := c.Create(t.Context(), o); err != nil {
		t.Errorf("Create: %v", err)
	}
}
