package progress

import "time"

// watchState is what is known of the watches of a stream, which follow one another.
type watchState struct {
	// open reports whether a watch is open: then a change that the store does not show is at
	// most on its way.
	open bool
	// since is when the first of the watches was opened that followed one another closely.
	since time.Time
	// ended is when the last watch ended.
	ended time.Time
}

// maxWatchGap is the longest gap between two watches that counts as short. Servers end each
// watch after some minutes.
const maxWatchGap = time.Minute

func (w *watchState) recordOpened() {
	now := time.Now()
	if w.since.IsZero() || !w.open && now.Sub(w.ended) > maxWatchGap {
		w.since = now
	}
	w.open = true
}

func (w *watchState) recordEnded() { w.open, w.ended = false, time.Now() }

// openSince returns since when there has been a watch, apart from short gaps. It returns the
// zero time if none is open.
func (w *watchState) openSince() time.Time {
	if !w.open {
		return time.Time{}
	}
	return w.since
}
