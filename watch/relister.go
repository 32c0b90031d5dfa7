package watch

import (
	"errors"
	"sync"
)

// errRelist ends a watch in whose place a fresh list was asked for.
var errRelist = errors.New("a fresh list was asked for")

// Relister asks a running [Follow] for a fresh list. A consumer of Follow does so if the server may have been
// restored from a backup, for example after an answer that is older than a change of the stream. The zero
// value is ready for use by one call of Follow. All methods can be used concurrently.
type Relister struct {
	mu sync.Mutex
	// isRequested is true from a request on, until a list begins.
	isRequested bool
	// endWatch ends the current watch. It is nil while there is none.
	endWatch func()
}

// Relist asks for a list that begins after the call. A watch that is open ends at once. A list
// that is under way is followed by another list. The sequence shows the difference, as after a
// version that has expired. Relist does not wait for the list.
func (r *Relister) Relist() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isRequested = true
	if r.endWatch != nil {
		r.endWatch()
	}
}

// beginList records that a list begins.
func (r *Relister) beginList() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isRequested = false
}

// isDue reports whether a list was asked for and has not begun.
func (r *Relister) isDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isRequested
}

// beginWatch records that a watch begins. endWatch ends the watch. beginWatch ends the watch at once if a
// list is due. The caller must call the function that beginWatch returns when the watch has ended.
func (r *Relister) beginWatch(endWatch func()) (ended func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endWatch = endWatch
	if r.isRequested {
		endWatch()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.endWatch = nil
	}
}
