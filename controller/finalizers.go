package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/kube"
)

// finalizerAttempts is how often a change of the finalizers is decided, when others change
// them at the same time.
const finalizerAttempts = 5

// finalizers adds and removes the finalizers of a controller.
type finalizers struct {
	// name is the finalizer, or empty.
	name string
	// former holds the names that the finalizer had in earlier versions of the program.
	former []string
	// retired holds finalizers of earlier versions of the program that need no cleanup any more.
	retired []string
	access  objectAccess
	// liveClient reads from the server.
	liveClient *kube.Client
	// retainer may be nil.
	retainer access.Retainer
}

// isEmpty reports whether the controller has no finalizers.
func (f *finalizers) isEmpty() bool { return f.name == "" && len(f.retired) == 0 }

// has reports whether obj has the finalizer under its present name.
func (f *finalizers) has(obj kube.Object) bool {
	return f.name != "" && slices.Contains(obj.GetFinalizers(), f.name)
}

// needsCleanup reports whether obj has the finalizer, under its present name or a former one.
func (f *finalizers) needsCleanup(obj kube.Object) bool {
	return f.has(obj) || slices.ContainsFunc(obj.GetFinalizers(), f.isFormer)
}

// hasAny reports whether the finalizer, a former name or a retired finalizer is among names.
func (f *finalizers) hasAny(names []string) bool { return slices.ContainsFunc(names, f.isHandled) }

// isHandled reports whether name is the finalizer, a former name or a retired finalizer.
func (f *finalizers) isHandled(name string) bool {
	return f.name != "" && name == f.name || f.isFormer(name) || f.isRetired(name)
}

func (f *finalizers) isFormer(name string) bool  { return slices.Contains(f.former, name) }
func (f *finalizers) isRetired(name string) bool { return slices.Contains(f.retired, name) }

// update adds the finalizer, and removes former names and retired finalizers, all in one patch. It returns the
// updated object, and reports whether the object still exists. An object that is being deleted stays as it is.
func (f *finalizers) update(
	ctx context.Context, c *kube.Client, obj kube.Object,
) (updated kube.Object, exists bool, err error) {
	if f.retainer != nil && f.name != "" && obj.GetDeletionTimestamp() == nil {
		written, err := f.retainer.Retain(ctx, obj.GetNamespace())
		if err != nil {
			return obj, true, err
		}
		defer written()
	}
	return f.edit(ctx, c, obj, func(obj kube.Object) (names []string, isNeeded bool) {
		// Another instance of this program may have been quicker.
		isComplete := (f.name == "" || f.has(obj)) && !slices.ContainsFunc(obj.GetFinalizers(), f.isOutdated)
		if isComplete || obj.GetDeletionTimestamp() != nil {
			return nil, false
		}
		names = slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), f.isOutdated)
		if f.name != "" && !f.has(obj) {
			names = append(names, f.name)
		}
		return names, true
	})
}

// isOutdated reports whether name is a former name or a retired finalizer.
func (f *finalizers) isOutdated(name string) bool { return f.isFormer(name) || f.isRetired(name) }

// removeOwn removes the finalizer, its former names and the retired finalizers in one patch. If no other finalizer
// is left, the server deletes an object that is being deleted.
func (f *finalizers) removeOwn(ctx context.Context, c *kube.Client, obj kube.Object) error {
	_, _, err := f.removeWhere(ctx, c, obj, f.isHandled)
	return err
}

// removeRetired removes the retired finalizers. It returns the updated object, and reports whether the object still
// exists.
func (f *finalizers) removeRetired(
	ctx context.Context, c *kube.Client, obj kube.Object,
) (updated kube.Object, exists bool, err error) {
	return f.removeWhere(ctx, c, obj, f.isRetired)
}

// removeWhere removes the finalizers for which isUnwanted returns true. Its results are those of edit.
func (f *finalizers) removeWhere(
	ctx context.Context, c *kube.Client, obj kube.Object, isUnwanted func(name string) bool,
) (updated kube.Object, exists bool, err error) {
	if f.retainer != nil && slices.ContainsFunc(obj.GetFinalizers(), isUnwanted) {
		defer f.retainer.RecordRemoval(obj.GetNamespace())
	}
	return f.edit(ctx, c, obj, func(obj kube.Object) (names []string, isNeeded bool) {
		if !slices.ContainsFunc(obj.GetFinalizers(), isUnwanted) {
			return nil, false
		}
		return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), isUnwanted), true
	})
}

// edit sets the finalizers of obj to the names from decide, unless decide reports that no change is needed.
// If others change the object at the same time, it decides once more. It returns the updated object, and
// reports whether the object still exists. exists means nothing with an error.
func (f *finalizers) edit(
	ctx context.Context, c *kube.Client, obj kube.Object, decide func(kube.Object) (names []string, isNeeded bool),
) (updated kube.Object, exists bool, err error) {
	for attempt := 1; ; attempt++ {
		names, isNeeded := decide(obj)
		if !isNeeded {
			return obj, true, nil
		}
		patched, err := f.set(ctx, c, obj, names)
		if err == nil {
			return patched, true, nil
		}
		live, exists, err := f.readRefused(ctx, obj, err, attempt)
		if err != nil || !exists {
			return obj, false, err
		}
		obj = live
	}
}

// set replaces the finalizers of obj by a patch. The patch tests the uid and the replaced list.
func (f *finalizers) set(ctx context.Context, c *kube.Client, obj kube.Object, wanted []string) (kube.Object, error) {
	// A test of a JSON patch reads a list that does not exist as null.
	var before any
	if names := obj.GetFinalizers(); len(names) > 0 {
		before = names
	}
	return f.access.patch(ctx, c, kube.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}, kube.JSONPatch(
		kube.TestAt("/metadata/uid", obj.GetUID()),
		kube.TestAt("/metadata/finalizers", before),
		kube.AddAt("/metadata/finalizers", wanted),
	))
}

// readRefused makes a live read of the object whose finalizers the server refused to set, so that the caller can decide
// once more. It reports whether the object still exists under its uid. It returns an error if a change of the object
// does not explain the refusal. The server answers a failed test with 422 and without details, so only a read shows the
// reason.
func (f *finalizers) readRefused(
	ctx context.Context, obj kube.Object, refused error, attempt int,
) (live kube.Object, exists bool, err error) {
	if kube.IsNotFound(refused) {
		return nil, false, nil
	}
	failed := fmt.Errorf("set the finalizers: %w", refused)
	if !kube.IsInvalid(refused) && !kube.IsConflict(refused) || attempt == finalizerAttempts {
		return nil, false, failed
	}
	live, err = f.access.get(ctx, f.liveClient, kube.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()})
	if kube.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	switch {
	case live.GetUID() != obj.GetUID():
		return nil, false, nil // the object is gone, and another object has its name
	case kube.IsInvalid(refused) && slices.Equal(live.GetFinalizers(), obj.GetFinalizers()) &&
		(live.GetDeletionTimestamp() == nil) == (obj.GetDeletionTimestamp() == nil):
		return nil, false, failed // the tests would have passed: the server has another reason
	}
	return live, true, nil
}
