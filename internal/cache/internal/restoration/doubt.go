package restoration

import (
	"sync"
	"time"
)

// doubt is whether the store of one stream is in doubt. The store is in doubt from a reason on, until a list is
// complete that began after the reason. All methods can be used concurrently.
//
// Example: a restoration is found while the stream lists.
//
//	the list begins                              reasonCountAtList 0
//	a restoration is found by another stream     reasonCount 1
//	the list is complete                         settledReasonCount 0: the store stays in doubt
//	another list begins                          reasonCountAtList 1
//	the list is complete                         settledReasonCount 1: the doubt is over
type doubt struct {
	mu sync.Mutex
	// reasonCount is the number of reasons so far. reasonCountAtList is the reasonCount when the latest list began.
	// settledReasonCount is the number of reasons that complete lists have settled.
	reasonCount, reasonCountAtList, settledReasonCount uint64
	// since is when the first reason came that is not settled. sinceAfterList is when the first reason came after the
	// beginning of the latest list.
	since, sinceAfterList time.Time
	// isRestoration is true if one of the reasons that are not settled is a restoration.
	isRestoration bool
	// isUnserved is true while the server does not serve the kind. A restoration does not count then.
	isUnserved bool
}

// add adds a reason.
func (d *doubt) add() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addLocked()
}

func (d *doubt) addLocked() {
	if d.reasonCount == d.settledReasonCount {
		d.since = time.Now()
	}
	if d.reasonCount == d.reasonCountAtList {
		d.sinceAfterList = time.Now()
	}
	d.reasonCount++
}

// addRestoration adds a restoration as a reason.
func (d *doubt) addRestoration() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isUnserved {
		d.addLocked()
		d.isRestoration = true
	}
}

// recordUnserved records that the server does not serve the kind.
func (d *doubt) recordUnserved() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isUnserved = true
}

// beginList records that a list begins.
func (d *doubt) beginList() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reasonCountAtList = d.reasonCount
	d.isUnserved = false
}

// endList records that a list is complete. settlesAll is true if the list settles all reasons: it certainly has the
// state of the restored server, or the server does not serve the kind.
func (d *doubt) endList(settlesAll bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settledReasonCount, d.since = d.reasonCountAtList, d.sinceAfterList
	if settlesAll {
		d.settledReasonCount = d.reasonCount
	}
	d.isRestoration = d.isRestoration && d.reasonCount > d.settledReasonCount
}

// isOpen reports whether the store is in doubt.
func (d *doubt) isOpen() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reasonCount > d.settledReasonCount
}

// isOpenSince returns since when the store has been in doubt. It returns false if the store is in no doubt.
func (d *doubt) isOpenSince() (since time.Time, isOpen bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.since, d.reasonCount > d.settledReasonCount
}

// settledCount returns the number of reasons that complete lists have settled.
func (d *doubt) settledCount() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settledReasonCount
}

// isDueToRestoration reports whether the store is in doubt because of a restoration.
func (d *doubt) isDueToRestoration() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.isRestoration
}

// isSettledByList reports whether the current list settles the doubt, unless the list is itself a proof.
func (d *doubt) isSettledByList() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reasonCount > d.settledReasonCount && d.reasonCount == d.reasonCountAtList
}

// needsList reports whether the store is in doubt for a reason from after the beginning of the latest list.
func (d *doubt) needsList() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reasonCount > d.settledReasonCount && d.reasonCount > d.reasonCountAtList
}
