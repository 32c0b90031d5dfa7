package queue

import (
	"time"

	"github.com/yare-go/yare/kube"
)

// Key names one object to be reconciled.
type Key = kube.Key

// Priority orders the keys that are ready. The zero value is Low.
type Priority uint8

const (
	// Low is for many triggers at once: initial lists and resyncs.
	Low Priority = iota
	// Due is for requeues, retries and delayed triggers whose time has come. Triggers do not
	// have it.
	Due
	// High is for changes that somebody waits for: new changes and deletions.
	High
)

// Echo is whether a trigger comes from a write of the key's own reconcile. An echo does not end
// a back-off. Otherwise a reconcile that writes and then fails would retry itself at once.
//
// The values are in the order of how much of the change the reconcile has made. So two merged triggers have the smaller
// value.
type Echo uint8

const (
	// NotEcho is a change that somebody else made.
	NotEcho Echo = iota
	// PossibleEcho is a change that the key's own reconcile may have made. It ends a back-off, but
	// only once until a reconcile succeeds.
	PossibleEcho
	// CertainEcho is a change to a version that the key's own reconcile certainly made. If a stream has not shown
	// the versions before, the change contains changes of others too.
	CertainEcho
	// OwnStatus is an echo that changes nothing but the status. It asks for no reconcile, unless the running call is a
	// cleanup, or ends with an error.
	OwnStatus
)

// Trigger is a reason to reconcile Key.
type Trigger struct {
	Key      Key
	Cause    Cause
	Priority Priority

	// NotBefore is the earliest time of the reconcile that the trigger asks for. A reconcile
	// before that time does not answer the trigger. Zero: at once.
	NotBefore time.Time

	// NeedsObject is true if the trigger matters only while the object of Key exists.
	NeedsObject bool

	// Echo is ignored for a trigger with a NotBefore in the future.
	Echo Echo
}
