package controller

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// finalizerWaitLimit is how long a deleted object may wait for its finalizers before that is logged.
const finalizerWaitLimit = time.Minute

// finalizerWaits logs, once per object, that the deletion of an object waits for finalizers that the controller
// does not handle.
type finalizerWaits struct {
	log        *slog.Logger
	finalizers *finalizers
	// clock is nil for the real clock.
	clock *clock.Clock
	// unfinished remembers which objects have been logged.
	unfinished *unfinishedObjects
}

// reportWait logs that obj has waited for too long. k is the key of obj. reportWait reports whether obj waits, and
// returns the time until its next call for obj. 0 means that no further call is needed.
func (w *finalizerWaits) reportWait(k kube.Key, obj kube.Object) (isWaiting bool, checkAfter time.Duration) {
	deleted := obj.GetDeletionTimestamp()
	waitsFor := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
	if deleted == nil || len(waitsFor) == 0 {
		return false, 0
	}
	waiting := w.unfinished.recordWait(k, obj.GetUID())
	if waiting.isWaitLogged {
		return true, 0
	}
	if waited := w.clock.Since(deleted.Time); waited < finalizerWaitLimit {
		return true, finalizerWaitLimit - waited
	}
	waiting.isWaitLogged = true
	w.log.Warn("an object that is being deleted waits for finalizers that the controller does not handle",
		"namespace", obj.GetNamespace(), "name", obj.GetName(), "finalizers", strings.Join(waitsFor, ", "),
		"hint", w.hint(waitsFor))
	return true, 0
}

// hint returns what the author of the program can do about an object that waits for finalizers.
func (w *finalizerWaits) hint(waitsFor []string) string {
	const ofEarlierVersions = "if an earlier version of this program added one of them, name it in FormerFinalizers of the controller, or in RetiredFinalizers if no cleanup is needed"
	switch {
	case w.finalizers.hasAny(waitsFor):
		return "the condition of FinalizerWhen does not hold for the object, so the controller leaves all finalizers of the object alone"
	case w.finalizers.name == "":
		return "the controller has no Finalizer, so none of its functions is called for an object that is being deleted; " +
			ofEarlierVersions
	}
	return ofEarlierVersions
}

// explainUndecodable returns err, the reason why the object of a key does not fit its Go type. If the object is being
// deleted and has a finalizer of the controller, the error says that nobody removes the finalizer, and what to do.
func (w *finalizerWaits) explainUndecodable(shown shownObjects, k kube.Key, err error) error {
	stored, isStored := shown.stored(k)
	if !isStored || !stored.Deleting {
		return err
	}
	var object metav1.PartialObjectMetadata
	content, readErr := stored.Bytes()
	if readErr != nil || kube.Unmarshal(content, &object) != nil || !w.finalizers.hasAny(object.Finalizers) {
		return err
	}
	return fmt.Errorf("the object is being deleted, and keeps the finalizers %s, because its cleanup needs an object that fits its Go type: correct the field, or run the command uninstall with --remove-finalizers, or remove the finalizers by hand, which leaves behind what a cleanup would remove: %w",
		strings.Join(object.Finalizers, ", "), err)
}
