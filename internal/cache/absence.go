package cache

import (
	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
)

// absence is the proof of a stream that the server does not serve its resource. Then no object of the resource exists.
//
// Example: the watch of the stream has reached version 12, and the resource is removed. The stream begins a list at
// tick 7, and discovery shows afterwards that the resource is not served. A write that was answered at tick 6 is about
// an object that is gone. So is a write that began at tick 5, and is answered at tick 9 with an object at version 11.
// If the object in the answer is at version 13, the server may have served the resource again.
type absence struct {
	// began is the tick at which the list began.
	began overlay.Tick
	// version is the resource version that the stream had reached. It is empty if the stream had reached none.
	version string
}

// isAfter reports whether the resource was not served after the state of e.
func (a *absence) isAfter(e overlay.Entry) bool {
	return e.IsRecordedBefore(a.began) || e.IsRequestedBefore(a.began) && ident.HasReached(a.version, e.Version)
}
