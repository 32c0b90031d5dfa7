package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube"
)

// RetiredFinalizers names finalizers that earlier versions of the program added, and that need
// no cleanup any more. The controller removes them from each object that it reconciles, and
// from objects that are being deleted. Otherwise an object with such a finalizer could never be
// deleted. The call can be removed from the program once every object has been reconciled.
func (c *Controller[T]) RetiredFinalizers(names ...string) *Controller[T] {
	for _, name := range names {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			c.definition.reject(fmt.Errorf("the retired finalizer %q is not valid: %s", name, problems[0]))
		}
	}
	c.definition.retired = append(c.definition.retired, names...)
	return c
}

// checkRetired returns an error if the finalizer that is in use is also retired.
func (d *definition) checkRetired() error {
	if d.finalizer != "" && slices.Contains(d.retired, d.finalizer) {
		return fmt.Errorf("the finalizer %q is both retired and in use: remove it from RetiredFinalizers", d.finalizer)
	}
	return nil
}

// removeRetired removes the retired finalizers from obj, and returns the updated object. It
// reports whether the object still exists.
func (e *engine) removeRetired(ctx context.Context, c *kube.Client, obj kube.Object) (updated kube.Object, exists bool, err error) {
	isRetired := func(name string) bool { return slices.Contains(e.retired, name) }
	for attempt := 1; ; attempt++ {
		before := obj.GetFinalizers()
		if len(e.retired) == 0 || !slices.ContainsFunc(before, isRetired) {
			return obj, true, nil
		}
		patched, err := e.setFinalizers(ctx, c, obj, slices.DeleteFunc(slices.Clone(before), isRetired))
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

// waitingCheck is how long an object may wait for its finalizers before that is logged.
const waitingCheck = time.Minute

// logWaiting logs, once, that an object that is being deleted has waited for finalizers for
// some time. It reports whether the object waits, and returns the time until the next check. 0 means
// that no check is needed.
func (e *engine) logWaiting(r *reconciliation) (isWaiting bool, checkAfter time.Duration) {
	obj := r.object
	deleted := obj.GetDeletionTimestamp()
	waitsFor := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
	if deleted == nil || len(waitsFor) == 0 {
		return false, 0
	}
	f := e.failures.failureFor(r.item.Key, obj.GetUID())
	if f.isWaitLogged {
		return true, 0
	}
	if waited := e.clock.Since(deleted.Time); waited < waitingCheck {
		return true, waitingCheck - waited
	}
	f.isWaitLogged = true
	e.log.Warn("an object that is being deleted waits for finalizers", "controller", e.name,
		"namespace", obj.GetNamespace(), "name", obj.GetName(), "finalizers", strings.Join(waitsFor, ", "),
		"hint", "if an earlier version of this program added one, name it in RetiredFinalizers")
	return true, 0
}

// readDeselected returns an object that the own streams do not show, if the controller still
// has to clean it up: it has a finalizer of the controller, and no longer matches the selectors
// of [For].
func (e *engine) readDeselected(ctx context.Context, key kube.Key) (kube.Object, presence, error) {
	if e.finalizer == "" && len(e.retired) == 0 {
		return nil, absent, nil
	}
	c := e.runtime.Client.InCluster(key.Cluster)
	obj, err := e.objects.get(ctx, c, key)
	switch {
	case kube.IsNotFound(err):
		return nil, absent, nil
	case err != nil:
		return nil, absent, err
	case !e.hasOwnFinalizer(obj.GetFinalizers()):
		return nil, absent, nil
	}
	// It may match again. Then its own stream is about to show it.
	matches, err := e.objects.exists(ctx, c, key.Namespace, append(slices.Clone(e.self.selectors), kube.Field("metadata.name", key.Name)))
	if err != nil || matches {
		return nil, absent, err
	}
	return obj, deselected, nil
}

// hasOwnFinalizer reports whether the controller's finalizer, or a retired one, is among names.
func (e *engine) hasOwnFinalizer(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == e.finalizer || slices.Contains(e.retired, name)
	})
}

// emitDeselected emits a trigger for each object that has a finalizer of the controller and
// that the own streams do not show: the object stopped matching the selectors of [For] while
// the program was down.
func (e *engine) emitDeselected(ctx context.Context, emit func(Trigger)) error {
	c, err := e.self.client(e.runtime)
	if err != nil {
		return err
	}
	for m, err := range kube.Metadata(c, e.kind.Resource, "").Each(ctx) {
		if e.self.ifServed && kube.IsNoResource(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find objects that no longer match the selectors: %w", err)
		}
		k := kube.Key{Cluster: e.own[0].stream.Cluster, Namespace: m.Namespace, Name: m.Name}
		_, isStored := e.stored(k)
		if !isStored && e.hasOwnFinalizer(m.Finalizers) {
			emit(Trigger{Key: k, Cause: "no longer selected"})
		}
	}
	return nil
}
