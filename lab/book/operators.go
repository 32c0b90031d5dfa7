package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// writeFunc makes what a Page asks for.
type writeFunc func(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) (reconcile.Result, error)

// operators returns the operators by their names. The names of the wrong ones begin with "wrong-".
func operators() map[string]writeFunc {
	return map[string]writeFunc{
		"create-or-update":       thenStatus(createOrUpdate),
		"create-or-patch":        thenStatus(createOrPatch),
		"get-then-update":        thenStatus(getThenUpdate),
		"update-each-time":       thenStatus(updateEachTime),
		"apply-each-time":        thenStatus(applyEachTime),
		"retry-on-conflict":      thenStatus(retryOnConflict),
		"periodic-status":        periodically(thenStatus(createOrUpdate)),
		"status-by-merge-patch":  thenStatusPatch(createOrUpdate),
		"wrong-swallow-conflict": thenStatus(swallow(updateEachTime, apierrors.IsConflict)),
		"wrong-swallow-denial":   thenStatus(swallow(createOrUpdate, apierrors.IsForbidden)),
		"wrong-create-only":      thenStatus(createOnly),
		"wrong-log-errors":       logErrors(thenStatus(createOrUpdate)),
	}
}

// newChild returns the child of a Page without its content.
func newChild(page *Page) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: page.Namespace, Name: page.Name + "-page"}}
}

// fill sets the content of a child.
func fill(child *corev1.ConfigMap, page *Page, scheme *runtime.Scheme) error {
	child.Data = map[string]string{"size": fmt.Sprint(page.Spec.Size)}
	return ctrl.SetControllerReference(page, child, scheme)
}

// childFunc makes the child of a Page.
type childFunc func(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) error

func createOrUpdate(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) error {
	child := newChild(page)
	_, err := controllerutil.CreateOrUpdate(ctx, c, child, func() error { return fill(child, page, scheme) })
	return err
}

func createOrPatch(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) error {
	child := newChild(page)
	_, err := controllerutil.CreateOrPatch(ctx, c, child, func() error { return fill(child, page, scheme) })
	return err
}

func getThenUpdate(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) error {
	child := newChild(page)
	err := c.Get(ctx, client.ObjectKeyFromObject(child), child)
	if apierrors.IsNotFound(err) {
		if err := fill(child, page, scheme); err != nil {
			return err
		}
		return c.Create(ctx, child)
	}
	if err != nil || child.Data["size"] == fmt.Sprint(page.Spec.Size) && metav1.IsControlledBy(child, page) {
		return err
	}
	if err := fill(child, page, scheme); err != nil {
		return err
	}
	return c.Update(ctx, child)
}

// updateEachTime updates the child also if nothing differs. The server stores no change then.
func updateEachTime(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) error {
	child := newChild(page)
	err := c.Get(ctx, client.ObjectKeyFromObject(child), child)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err := fill(child, page, scheme); err != nil {
		return err
	}
	if apierrors.IsNotFound(err) || child.ResourceVersion == "" {
		return c.Create(ctx, child)
	}
	return c.Update(ctx, child)
}

func applyEachTime(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) error {
	child := newChild(page)
	child.APIVersion, child.Kind = "v1", "ConfigMap"
	if err := fill(child, page, scheme); err != nil {
		return err
	}
	//nolint:staticcheck // the book applies typed objects so
	return c.Patch(ctx, child, client.Apply, client.FieldOwner("book"), client.ForceOwnership)
}

func retryOnConflict(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return getThenUpdate(ctx, c, scheme, page) })
}

// createOnly never looks at a child that exists.
func createOnly(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) error {
	child := newChild(page)
	if err := fill(child, page, scheme); err != nil {
		return err
	}
	if err := c.Create(ctx, child); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// swallow takes some errors for success.
func swallow(write childFunc, isSwallowed func(error) bool) childFunc {
	return func(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) error {
		if err := write(ctx, c, scheme, page); err != nil && !isSwallowed(err) {
			return err
		}
		return nil
	}
}

// thenStatus makes the child, and updates the status.
func thenStatus(write childFunc) writeFunc {
	return func(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) (reconcile.Result, error) {
		if err := write(ctx, c, scheme, page); err != nil {
			return reconcile.Result{}, err
		}
		page.Status = PageStatus{Size: page.Spec.Size, Ready: true}
		return reconcile.Result{}, c.Status().Update(ctx, page)
	}
}

// thenStatusPatch makes the child, and patches the status.
func thenStatusPatch(write childFunc) writeFunc {
	return func(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) (reconcile.Result, error) {
		if err := write(ctx, c, scheme, page); err != nil {
			return reconcile.Result{}, err
		}
		before := page.DeepCopyObject().(*Page)
		page.Status = PageStatus{Size: page.Spec.Size, Ready: true}
		return reconcile.Result{}, c.Status().Patch(ctx, page, client.MergeFrom(before))
	}
}

// periodically repeats a reconcile.
func periodically(write writeFunc) writeFunc {
	return func(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) (reconcile.Result, error) {
		result, err := write(ctx, c, scheme, page)
		result.RequeueAfter = 2 * time.Second
		return result, err
	}
}

// logErrors logs errors in place of returning them.
func logErrors(write writeFunc) writeFunc {
	return func(ctx context.Context, c client.Client, scheme *runtime.Scheme, page *Page) (reconcile.Result, error) {
		if _, err := write(ctx, c, scheme, page); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "reconcile")
		}
		return reconcile.Result{}, nil
	}
}
