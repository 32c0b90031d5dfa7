package progress

import "github.com/yare-go/yare/internal/follow"

// Recovery detects that a stream works again after an error. It sees every change of the
// stream, and every error that concerns the stream as a whole, in their order.
type Recovery struct {
	// isFailing is true from an error on, until the stream works again.
	isFailing bool
	// hasErrorEndedWatch is true if the last error ended an open watch. The opening of the next watch proves
	// nothing then: the server may end that watch with the same error.
	hasErrorEndedWatch bool
	// hasWatchEnded is true if the last change was the end of a watch.
	hasWatchEnded bool
	// isListing is true within a list. The objects of a list prove nothing: the list may fail before its end.
	isListing bool
}

// RecordError records an error.
func (r *Recovery) RecordError() {
	r.isFailing, r.hasErrorEndedWatch, r.hasWatchEnded = true, r.hasWatchEnded, false
}

// RecordChange records a change, and reports whether the stream works again with it.
func (r *Recovery) RecordChange(t follow.ChangeType) (isRecovered bool) {
	r.hasWatchEnded = t == follow.ChangeWatchEnded
	isWorking := false
	switch t {
	case follow.ChangeListStarted:
		r.isListing = true
	case follow.ChangeListed:
		r.isListing, isWorking = false, true
	case follow.ChangeBookmark:
		isWorking = true
	case follow.ChangeAdded, follow.ChangeModified, follow.ChangeDeleted:
		isWorking = !r.isListing
	case follow.ChangeWatchOpened:
		isWorking = !r.hasErrorEndedWatch
	}
	if !isWorking || !r.isFailing {
		return false
	}
	r.isFailing = false
	return true
}
