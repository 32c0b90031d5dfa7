// Package progress follows the changes of one stream, and derives from them what the objects of
// the stream do not show: the newest change of each namespace, whether a watch is open and since
// when, and whether the stream works again after an error.
package progress

import (
	"sync"
	"time"
)

// Progress is how far a stream has got. The zero value is that of a stream that has not begun. All methods can be
// used concurrently. Only the stream calls the methods Record….
type Progress struct {
	mu     sync.RWMutex
	newest newestChanges
	// isOpen is true while a watch is open: then a change that the store does not show is at
	// most on its way.
	isOpen bool
	// openSince is when the first watch of the present series was opened. The gaps within a series are short: see
	// maxWatchGap.
	openSince time.Time
	// endedAt is when the last watch ended.
	endedAt time.Time
}

// maxWatchGap is the longest gap between two watches that counts as short. Servers end each
// watch after some minutes.
const maxWatchGap = time.Minute

// OpenSince returns since when there has been an open watch, apart from short gaps between two
// watches. It returns the zero time if no watch is open.
func (p *Progress) OpenSince() time.Time {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if !p.isOpen {
		return time.Time{}
	}
	return p.openSince
}

// HasNewest reports whether a store at version has every change that the stream has published in
// a namespace. An empty namespace stands for all.
func (p *Progress) HasNewest(version, namespace string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.newest.newestIn(namespace).isIn(version)
}

// RecordWatch records the opening of a watch, or the end of the watch.
func (p *Progress) RecordWatch(isOpen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case !isOpen:
		p.endedAt = now
	case p.openSince.IsZero() || !p.isOpen && now.Sub(p.endedAt) > maxWatchGap:
		p.openSince = now
	}
	p.isOpen = isOpen
}

// RecordChange records a change in a namespace, at version. An empty version stands for a deletion
// whose version is not known. isListing is true if the change is part of a list, whose objects
// come in no order.
func (p *Progress) RecordChange(namespace, version string, isListing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest.record(namespace, version, isListing)
}

// RecordListStarted records that the stream lists anew.
func (p *Progress) RecordListStarted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest.beginList()
}

// RecordListed records that a list made at version is complete. It is not for the finding that the server does not
// serve the kind, because no version has this absence.
func (p *Progress) RecordListed(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest.endList(version)
}
