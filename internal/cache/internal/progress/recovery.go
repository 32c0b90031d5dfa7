package progress

import "github.com/yare-go/yare/internal/follow"

// Recovery detects that a stream works again after an error. It sees every change of the
// stream, and every error that concerns the stream as a whole, in their order.
type Recovery struct {
	// failed is true from an error on, until the stream works again.
	failed bool
	// failedOpen is true if the last error ended a watch that was open. Then it proves nothing that
	// the next watch opens: the server may end that watch with the same error.
	failedOpen bool
	// ended is true if the last change was the end of a watch.
	ended bool
	// listing is true within a list, whose objects prove nothing either.
	listing bool
}

// RecordError records an error.
func (r *Recovery) RecordError() {
	r.failed, r.failedOpen, r.ended = true, r.ended, false
}

// RecordChange records a change, and reports whether the stream works again with it.
func (r *Recovery) RecordChange(t follow.ChangeType) (recovered bool) {
	r.ended = t == follow.ChangeWatchEnded
	works := false
	switch t {
	case follow.ChangeListStarted:
		r.listing = true
	case follow.ChangeListed:
		r.listing, works = false, true
	case follow.ChangeBookmark:
		works = true
	case follow.ChangeAdded, follow.ChangeModified, follow.ChangeDeleted:
		works = !r.listing
	case follow.ChangeWatchOpened:
		works = !r.failedOpen
	}
	if !works || !r.failed {
		return false
	}
	r.failed = false
	return true
}
