package watch

import (
	"errors"
	"sync"
)

// errRelist ends a watch in whose place a fresh list was asked for.
var errRelist = errors.New("a fresh list was asked for")

// Relister asks a running [Follow] for a fresh list. A consumer of Follow does so when it has
// learned from elsewhere that the server has lost a state that it had shown. The zero value is
// ready for use by one call of Follow. All methods can be used concurrently.
type Relister struct {
	mu sync.Mutex
	// due is true from a request on, until a list begins.
	due bool
	// endWatch ends the current watch. It is nil while there is none.
	endWatch func()
}

// FollowOption changes how [Follow] follows a stream.
type FollowOption func(*follower)

// WithRelister lets r ask for fresh lists.
func WithRelister(r *Relister) FollowOption { return func(f *follower) { f.relister = r } }

// Relist asks for a list that begins after the call. A watch that is open ends at once. A list
// that is under way is followed by another list. The sequence shows the difference, as after a
// version that has expired. Relist does not wait for the list.
func (r *Relister) Relist() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = true
	if r.endWatch != nil {
		r.endWatch()
	}
}

// beginList records that a list begins.
func (r *Relister) beginList() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = false
}

// isDue reports whether a list was asked for and has not begun.
func (r *Relister) isDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.due
}

// beginWatch records that a watch begins, which endWatch ends. It ends the watch at once if a
// list is due. The caller must call the function that beginWatch returns when the watch has
// ended.
func (r *Relister) beginWatch(endWatch func()) (ended func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endWatch = endWatch
	if r.due {
		endWatch()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.endWatch = nil
	}
}
