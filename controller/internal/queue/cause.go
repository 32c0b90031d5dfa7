package queue

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

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
	// more holds the causes after the first. Most reconciles have only one cause and never
	// allocate it.
	more  []Cause
	count int
}

// Count returns the number of all causes, including those that were not kept.
func (c Causes) Count() int { return c.count }

// All yields the kept causes, in the order in which they came.
func (c Causes) All() iter.Seq[Cause] {
	return func(yield func(Cause) bool) {
		if c.count > 0 && yield(c.first) {
			slices.Values(c.more)(yield)
		}
	}
}

// String returns the causes that were kept, and the count if there were more.
func (c Causes) String() string {
	var b strings.Builder
	kept := 0
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
	if cause == c.first || len(c.more) == maxCauses-1 || slices.Contains(c.more, cause) {
		return
	}
	if c.more == nil {
		c.more = make([]Cause, 0, maxCauses-1)
	}
	c.more = append(c.more, cause)
}
