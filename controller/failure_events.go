package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// failureEventAfter is how long an object must have failed until an event reports it.
const failureEventAfter = 3 * time.Minute

// eventRecorder records events about objects. The Recorder of package events implements it.
type eventRecorder = interface {
	Warning(obj kube.Object, reason, action, note string, args ...any)
}

// failureEvents records why an object is stuck, for its users, who may not read the log of the program.
type failureEvents struct {
	// recorder is nil in a program that records no events.
	recorder eventRecorder
}

// recordFailure records the error of a result if the object has failed for a while, or waits for a change after a
// terminal error. since is the time of the first failure.
func (f failureEvents) recordFailure(r Result, since time.Time) {
	switch { // a note with a time would be a new event each time
	case IsTerminal(r.Err):
		f.warn(r.Object, "ReconcileFailed", "%v. It is tried again after a change", r.Err)
	case time.Since(since) >= failureEventAfter:
		f.warn(r.Object, "ReconcileFailed", "%v", r.Err)
	}
}

// recordHang records that the reconcile of an object has not returned for long.
func (f failureEvents) recordHang(object wire.Ref) {
	f.warn(object, "ReconcileHangs", "the reconcile has not returned for minutes")
}

// warn records an event about an object of the cluster of the program, unless the object could not be read.
func (f failureEvents) warn(object wire.Ref, reason, note string, args ...any) {
	if f.recorder == nil || object.UID == "" || object.Cluster != "" {
		return
	}
	o := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name, UID: object.UID},
	}
	o.APIVersion, o.Kind = object.Resource.GroupVersion().String(), object.Resource.Kind
	f.recorder.Warning(o, reason, "Reconcile", note, args...)
}
