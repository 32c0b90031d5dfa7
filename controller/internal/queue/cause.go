package queue

import (
	"fmt"
	"iter"
	"strings"
)

// Cause is what happened, for the log. It is a value, so that keeping one costs
// neither an allocation nor the formatting; its strings are kept until the round
// ends, so they should not be parts of something large.
type Cause struct {
	Change                string // "added", "modified", "deleted", "resync", ...
	Kind, Namespace, Name string // of the object that changed, if there is one
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

// maxCauses is how many different causes of one round are kept.
const maxCauses = 3

// Causes is why a round is run: the first few different causes, and how many
// there were in all. The zero value is empty.
type Causes struct {
	first Cause
	// more holds the causes after the first. Most rounds have only one cause and
	// never allocate it.
	more  []Cause
	count int
}

// Count is the number of all causes, also of those that were not kept.
func (c Causes) Count() int { return c.count }

// All yields the causes that were kept, in the order in which they came.
func (c Causes) All() iter.Seq[Cause] {
	return func(yield func(Cause) bool) {
		if c.count == 0 || !yield(c.first) {
			return
		}
		for _, m := range c.more {
			if !yield(m) {
				return
			}
		}
	}
}

// String lists the causes that were kept, and the count where it is more.
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

// add notes a cause. An object that changes often fills one place, not all.
func (c *Causes) add(cause Cause) {
	c.count++
	if c.count == 1 {
		c.first = cause
		return
	}
	if cause == c.first || len(c.more) == maxCauses-1 {
		return
	}
	for i := range c.more {
		if c.more[i] == cause {
			return
		}
	}
	if c.more == nil {
		c.more = make([]Cause, 0, maxCauses-1)
	}
	c.more = append(c.more, cause)
}
