package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/yare-go/yare/kube"
)

// finalizerAttempts is how often a change of the finalizers is decided, when others change
// them at the same time.
const finalizerAttempts = 5

func hasFinalizer(obj kube.Object, name string) bool {
	return name != "" && slices.Contains(obj.GetFinalizers(), name)
}

// addFinalizer adds the finalizer, and returns the updated object. It reports whether the
// object has the finalizer: a finalizer is not added to an object that is being deleted or
// gone.
func (e *engine) addFinalizer(ctx context.Context, c *kube.Client, obj kube.Object) (updated kube.Object, hasIt bool, err error) {
	for attempt := 1; ; attempt++ {
		switch {
		case obj.GetDeletionTimestamp() != nil:
			return obj, false, nil
		case hasFinalizer(obj, e.finalizer):
			return obj, true, nil // another instance of this program was quicker
		}
		patched, err := e.setFinalizers(ctx, c, obj, append(slices.Clone(obj.GetFinalizers()), e.finalizer))
		if err == nil {
			return patched, true, nil
		}
		live, exists, err := e.decideAgain(ctx, obj, err, attempt)
		if !exists {
			return obj, false, err
		}
		obj = live
	}
}

// removeFinalizer removes the finalizer. If no other finalizer is left, the server deletes an
// object that is being deleted.
func (e *engine) removeFinalizer(ctx context.Context, c *kube.Client, obj kube.Object) error {
	for attempt := 1; hasFinalizer(obj, e.finalizer); attempt++ {
		_, err := e.setFinalizers(ctx, c, obj,
			slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == e.finalizer }))
		if err == nil {
			return nil
		}
		live, exists, err := e.decideAgain(ctx, obj, err, attempt)
		if !exists {
			return err
		}
		obj = live
	}
	return nil
}

// setFinalizers replaces the finalizers of obj by a patch that tests the uid of obj and the list
// that the patch replaces.
func (e *engine) setFinalizers(ctx context.Context, c *kube.Client, obj kube.Object, wanted []string) (kube.Object, error) {
	// A test of a JSON patch reads a list that does not exist as null.
	var before any
	if f := obj.GetFinalizers(); len(f) > 0 {
		before = f
	}
	return e.objects.patch(ctx, c, kube.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}, kube.JSONPatch(
		kube.TestAt("/metadata/uid", obj.GetUID()),
		kube.TestAt("/metadata/finalizers", before),
		kube.AddAt("/metadata/finalizers", wanted),
	))
}

// decideAgain makes a live read of the object whose finalizers the server refused to set. It reports
// whether the object still exists under its uid, so that the caller can decide again. The
// server answers a failed test with 422 and without details, so only a read shows the reason.
func (e *engine) decideAgain(ctx context.Context, obj kube.Object, refused error, attempt int) (live kube.Object, exists bool, err error) {
	if kube.IsNotFound(refused) {
		return nil, false, nil
	}
	failed := fmt.Errorf("set the finalizers: %w", refused)
	if !kube.IsInvalid(refused) && !kube.IsConflict(refused) || attempt == finalizerAttempts {
		return nil, false, failed
	}
	now, err := e.objects.get(ctx, e.runtime.Client, kube.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()})
	if kube.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	switch {
	case now.GetUID() != obj.GetUID():
		return nil, false, nil // the object is gone, and another object has its name
	case kube.IsInvalid(refused) && slices.Equal(now.GetFinalizers(), obj.GetFinalizers()) &&
		(now.GetDeletionTimestamp() == nil) == (obj.GetDeletionTimestamp() == nil):
		return nil, false, failed // the tests would have passed: the server has another reason
	}
	return now, true, nil
}
