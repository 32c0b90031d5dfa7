package progress

import (
	"sync"
	"time"
)

// Progress is how far a stream has got. All methods can be used concurrently. Only the Recorder
// of a Progress changes it.
type Progress struct {
	mu     sync.RWMutex
	watch  watchState
	newest newestChanges
}

// Recorder changes a Progress. Each Progress has one, which its stream holds. A Recorder must not
// be used concurrently.
type Recorder struct{ progress *Progress }

// New returns the Progress of a stream that has not begun, and its Recorder.
func New() (*Progress, *Recorder) {
	p := &Progress{}
	return p, &Recorder{p}
}

// OpenSince returns since when there has been an open watch, apart from short gaps between two
// watches. It returns the zero time if no watch is open.
func (p *Progress) OpenSince() time.Time {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.watch.openSince()
}

// HasNewest reports whether a store at version has every change that the stream has published in
// a namespace. An empty namespace stands for all.
func (p *Progress) HasNewest(version, namespace string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.newest.newestIn(namespace).isIn(version)
}

// RecordWatch records the opening of a watch, or the end of the watch.
func (r *Recorder) RecordWatch(open bool) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	if open {
		r.progress.watch.recordOpened()
	} else {
		r.progress.watch.recordEnded()
	}
}

// RecordChange records a change in a namespace, at version. An empty version stands for a deletion
// whose version is not known. listing reports whether the change is part of a list, whose objects
// come in no order.
func (r *Recorder) RecordChange(namespace, version string, listing bool) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	r.progress.newest.record(namespace, version, listing)
}

// RecordListStarted records that the stream lists anew.
func (r *Recorder) RecordListStarted() {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	r.progress.newest.beginList()
}

// RecordListed records that a list made at version is complete.
func (r *Recorder) RecordListed(version string) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	r.progress.newest.endList(version)
}
