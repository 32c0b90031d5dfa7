package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/yare-go/yare/kube"
)

// finalizerAttempts is how often the finalizers are decided on anew when others change
// them at the same time.
const finalizerAttempts = 5

func hasFinalizer(obj kube.Object, name string) bool {
	return name != "" && slices.Contains(obj.GetFinalizers(), name)
}

// addFinalizer adds the finalizer, and returns the object as it is then: nil if it must
// not be added, because the object is being deleted or gone.
func (e *engine[T]) addFinalizer(ctx context.Context, c *kube.Client, t *T) (*T, error) {
	for attempt := 1; ; attempt++ {
		obj := e.object(t)
		switch {
		case obj.GetDeletionTimestamp() != nil:
			return nil, nil
		case hasFinalizer(obj, e.finalizer):
			return t, nil // somebody was quicker: another instance of this program
		}
		patched, err := e.setFinalizers(ctx, c, obj, append(slices.Clone(obj.GetFinalizers()), e.finalizer))
		if err == nil {
			return patched, nil
		}
		if t, err = e.decideAgain(ctx, obj, err, attempt); t == nil {
			return nil, err
		}
	}
}

// removeFinalizer takes the finalizer away, upon which the object may go.
func (e *engine[T]) removeFinalizer(ctx context.Context, c *kube.Client, obj kube.Object) error {
	for attempt := 1; hasFinalizer(obj, e.finalizer); attempt++ {
		_, err := e.setFinalizers(ctx, c, obj,
			slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == e.finalizer }))
		if err == nil {
			return nil
		}
		t, err := e.decideAgain(ctx, obj, err, attempt)
		if t == nil {
			return err
		}
		obj = e.object(t)
	}
	return nil
}

// setFinalizers replaces the finalizers of obj, by a patch that tests its uid and the list
// that it replaces.
func (e *engine[T]) setFinalizers(ctx context.Context, c *kube.Client, obj kube.Object, wanted []string) (*T, error) {
	// A list that is not there is null to a test.
	var before any
	if f := obj.GetFinalizers(); len(f) > 0 {
		before = f
	}
	return e.api(c, obj.GetNamespace()).Patch(ctx, obj.GetName(), kube.JSONPatch(
		kube.TestAt("/metadata/uid", obj.GetUID()),
		kube.TestAt("/metadata/finalizers", before),
		kube.AddAt("/metadata/finalizers", wanted),
	))
}

// decideAgain reads live an object whose finalizers the server refused to set: nil, and no
// error, if it is gone. The server answers a test that failed with 422, and says no more:
// so that this, too, is known only from what is there now.
func (e *engine[T]) decideAgain(ctx context.Context, obj kube.Object, refused error, attempt int) (*T, error) {
	if kube.IsNotFound(refused) {
		return nil, nil
	}
	failed := fmt.Errorf("set the finalizers: %w", refused)
	if !kube.IsInvalid(refused) && !kube.IsConflict(refused) || attempt == finalizerAttempts {
		return nil, failed
	}
	t, err := e.api(e.runtime.Client, obj.GetNamespace()).Get(ctx, obj.GetName())
	if kube.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	live := e.object(t)
	switch {
	case live.GetUID() != obj.GetUID():
		return nil, nil // it is gone, and another has its name
	case kube.IsInvalid(refused) && slices.Equal(live.GetFinalizers(), obj.GetFinalizers()) &&
		(live.GetDeletionTimestamp() == nil) == (obj.GetDeletionTimestamp() == nil):
		return nil, failed // not because of the tests: they would have held
	}
	return t, nil
}
