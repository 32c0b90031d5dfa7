package queue

import (
	"fmt"
	"iter"
	"slices"
	"strings"
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

// Cause is what happened, for the log. A Cause is a value: to keep one costs no allocation and no
// formatting. The queue keeps its strings until the reconcile ends, so they should not be parts of large
// strings.
type Cause struct {
	// Change is what happened, such as "added", "modified", "deleted" or "resync".
	Change string
	// Kind, Namespace and Name are those of the object that changed. They are empty if no object changed.
	Kind, Namespace, Name string
}

// String returns the cause as "Deployment default/web modified".
func (c Cause) String() string {
	var b strings.Builder
	for _, s := range []string{c.Kind, Key{Namespace: c.Namespace, Name: c.Name}.String(), c.Change} {
		if s == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	return b.String()
}

// maxCauses is the number of different causes of one reconcile that are kept.
const maxCauses = 3

// Causes are the causes of one reconcile: the first few different ones, and the number of all.
// The zero value is empty.
type Causes struct {
	first Cause
	// more holds the causes after the first. Most reconciles have only one cause, and more is nil.
	more *[maxCauses - 1]Cause
	// moreCount is the number of causes in more, and count that of all causes.
	moreCount, count int32
}

// Count returns the number of all causes, including those that were not kept.
func (c Causes) Count() int { return int(c.count) }

// All yields the kept causes, in the order in which they came.
func (c Causes) All() iter.Seq[Cause] {
	return func(yield func(Cause) bool) {
		if c.count > 0 && yield(c.first) && c.moreCount > 0 {
			slices.Values(c.more[:c.moreCount])(yield)
		}
	}
}

// String returns the causes that were kept, and the count if there were more.
func (c Causes) String() string {
	var b strings.Builder
	kept := int32(0)
	for cause := range c.All() {
		if kept > 0 {
			b.WriteString(", ")
		}
		b.WriteString(cause.String())
		kept++
	}
	if c.count > kept {
		fmt.Fprintf(&b, " (%d in all)", c.count)
	}
	return b.String()
}

// add adds a cause. Equal causes are counted, but kept once.
//
//go:noinline
func (c *Causes) add(cause Cause) {
	c.count++
	if c.count == 1 {
		c.first = cause
		return
	}
	if cause == c.first || c.moreCount == maxCauses-1 {
		return
	}
	if c.more == nil {
		c.more = new([maxCauses - 1]Cause)
	}
	if !slices.Contains(c.more[:c.moreCount], cause) {
		c.more[c.moreCount] = cause
		c.moreCount++
	}
}
