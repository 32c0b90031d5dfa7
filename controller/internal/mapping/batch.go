// Package mapping holds the changes of watched objects until the objects that they concern are found.
package mapping

import (
	"github.com/yare-go/yare/controller/internal/echo"
	"github.com/yare-go/yare/controller/internal/queue"
)

// Batch is one or more changes of one watched object.
type Batch struct {
	Priority queue.Priority
	// Cause is the cause of the last change.
	Cause queue.Cause
	// Last is the version of the last change, and Earlier holds the versions of the other changes. If
	// there were too many, a zero version stands for some of them.
	Last    echo.ShownVersion
	Earlier []echo.ShownVersion
}

// Merge adds later changes of the same object.
func (b *Batch) Merge(later Batch) {
	switch {
	case later.isEmpty():
		return
	case b.isEmpty():
		*b = later
		return
	}
	b.Earlier = append(append(b.Earlier, b.Last), later.Earlier...)
	if len(b.Earlier) > maxFormerStates {
		b.Earlier = append(b.Earlier[:maxFormerStates-1], echo.ShownVersion{})
	}
	b.Priority, b.Cause, b.Last = max(b.Priority, later.Priority), later.Cause, later.Last
}

func (b *Batch) isEmpty() bool { return b.Cause == queue.Cause{} }
