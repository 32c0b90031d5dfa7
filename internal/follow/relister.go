package follow

import (
	"errors"
	"sync"
)

var (
	// errRelist ends a watch in whose place a fresh list was asked for.
	errRelist = errors.New("a fresh list was asked for")
	// errProbe ends a watch in whose place a probe was asked for.
	errProbe = errors.New("a probe was asked for")
)

// Relister asks a running sequence of [Changes] for a fresh list. A consumer of the sequence does so if the server may
// have been restored from a backup, for example after an answer that is older than a change of the stream. The zero
// value is ready for use by one call of Changes. All methods can be used concurrently.
type Relister struct {
	mu sync.Mutex
	// isListDue is true from a request for a list on, until a list begins. isProbeDue is true from a request for a
	// probe on, until a watch was ended for it or a list begins.
	isListDue, isProbeDue bool
	// isListing is true from the beginning of a list on, until a watch is open. A list must come to its end: a
	// list that takes longer than the time between two requests would never be complete.
	isListing bool
	// endWatch ends the current watch, or the current streaming list, with a cause. It is nil while there is none.
	endWatch func(cause error)
}

// Relist asks for a list that begins after the call. A watch that is open ends at once. A list
// that is under way goes on to its end, and another list follows. The sequence shows the difference, as after a
// version that has expired. Relist does not wait for the list.
func (r *Relister) Relist() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isListDue = true
	r.endWatchLocked()
}

// Probe asks whether the server has lost what the stream has shown. A watch that is open ends at once, and is
// reopened from its last version. The server is then probed as after an unexpected end of a watch: see "A restored
// server" in the documentation of package watch. Probe does not wait for the result.
func (r *Relister) Probe() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isProbeDue = true
	r.endWatchLocked()
}

// endWatchLocked ends an open watch if a list or a probe is due.
func (r *Relister) endWatchLocked() {
	switch {
	case r.endWatch == nil || r.isListing:
	case r.isListDue:
		r.endWatch(errRelist)
	case r.isProbeDue:
		r.isProbeDue = false
		r.endWatch(errProbe)
	}
}

// beginList records that a list begins.
func (r *Relister) beginList() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isListDue, r.isProbeDue, r.isListing = false, false, true
}

// shouldList reports whether a list was asked for and has not begun.
func (r *Relister) shouldList() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isListDue
}

// beginWatch records that a watch or a streaming list begins. endWatch ends it. The caller must call the function that
// beginWatch returns when the watch has ended.
func (r *Relister) beginWatch(endWatch func(cause error)) (ended func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endWatch = endWatch
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.endWatch = nil
	}
}

// recordOpened records that a watch is open, and that a list before it is complete. If a list or a probe is due, the
// watch ends at once.
func (r *Relister) recordOpened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isListing = false
	r.endWatchLocked()
}
