package controller

import (
	"time"

	"github.com/yare-go/yare/kube"
)

// Trigger asks for the reconcile of one object, or of all.
type Trigger struct {
	// Key names the object. A trigger is ignored if the object does not exist, or if the controller does not
	// watch the object. The namespace is ignored if the reconciled kind is cluster-scoped.
	Key kube.Key
	// All asks for all objects, and Key is ignored. Changes of objects go first, as with a resync.
	All bool
	// Cause is for the log and for [Result].
	Cause string
	// NotBefore is the earliest time of the reconcile, such as [Now] plus a delay. The zero time
	// means at once.
	NotBefore time.Time
}
