package queue

import "time"

// Key names one object to be reconciled. Cluster is "" for the home cluster,
// Namespace is "" for cluster-scoped objects.
type Key struct{ Cluster, Namespace, Name string }

// String returns the key as namespace/name, with the cluster before it where
// there is more than one.
func (k Key) String() string {
	s := k.Name
	if k.Namespace != "" {
		s = k.Namespace + "/" + s
	}
	if k.Cluster != "" {
		s = k.Cluster + ":" + s
	}
	return s
}

// Priority orders the keys that are ready. The zero value is Low.
type Priority uint8

const (
	// Low is for floods: initial lists and resyncs.
	Low Priority = iota
	// High is for what somebody waits for: fresh events and deletions. Requeues
	// and retries that are due are High too.
	High
)

// Trigger is a reason to reconcile Key.
type Trigger struct {
	Key      Key
	Cause    Cause
	Priority Priority

	// NotBefore is the earliest time of the round it asks for. Zero: at once.
	NotBefore time.Time

	// Echo says that the change is the answer to a write of our own. It does not
	// shorten a back-off, else every failing round that wrote something first
	// would be its own reason to be retried at once.
	Echo bool
}
