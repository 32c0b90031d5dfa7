package livepage

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxReconciles and maxReconcileBytes bound the reconciles that are kept.
	maxReconciles     = 4000
	maxReconcileBytes = 640 << 10
	// maxChanges and maxChangeBytes bound the changes that are kept.
	maxChanges     = 1000
	maxChangeBytes = 224 << 10
	// maxFailing bounds the failing objects whose last errors are kept beside the other reconciles.
	maxFailing = 100
)

// history holds the last reconciles and the last changes. It drops the oldest ones. It is safe for concurrent use.
type history struct {
	mu sync.Mutex
	// reconciles have consecutive numbers. The first one is the oldest one.
	reconciles     []*reconcile
	reconcileBytes int
	lastNumber     uint64
	changes        []*change
	changeBytes    int
	// failing holds the last reconcile of each object whose last reconcile failed, without its requests.
	failing map[failingKey]*reconcile
	// wakers have a channel for each reader, with room for one value. A reader receives a value when there is something
	// new.
	wakers map[chan struct{}]struct{}
}

// failingKey names an object that a controller reconciles.
type failingKey struct {
	controller string
	object     objectName
}

func newHistory() *history {
	return &history{failing: make(map[failingKey]*reconcile), wakers: make(map[chan struct{}]struct{})}
}

// addReconcile adds a reconcile, and gives it its number.
func (h *history) addReconcile(r *reconcile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastNumber++
	r.Number = h.lastNumber
	h.reconciles = append(h.reconciles, r)
	h.reconcileBytes += r.byteCount()
	for len(h.reconciles) > maxReconciles || h.reconcileBytes > maxReconcileBytes {
		h.reconcileBytes -= h.reconciles[0].byteCount()
		h.reconciles[0] = nil
		h.reconciles = h.reconciles[1:]
	}
	key := failingKey{r.Controller, r.Object}
	delete(h.failing, key)
	if r.Error != "" {
		failed := *r
		failed.Causes, failed.Reads, failed.Writes = "", nil, nil // they are large
		h.failing[key] = &failed
		if len(h.failing) > maxFailing {
			h.dropOldestFailingLocked()
		}
	}
	for waker := range h.wakers {
		select {
		case waker <- struct{}{}:
		default: // the reader has not yet seen the last value
		}
	}
}

func (h *history) dropOldestFailingLocked() {
	var oldest *reconcile
	var oldestKey failingKey
	for key, r := range h.failing {
		if oldest == nil || r.Number < oldest.Number {
			oldest, oldestKey = r, key
		}
	}
	delete(h.failing, oldestKey)
}

// addChange adds a change, unless it is there already: each controller that watches an object reports its changes.
func (h *history) addChange(c *change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.changes) - 1; i >= 0 && i >= len(h.changes)-16; i-- {
		if last := h.changes[i]; last.Object == c.Object && last.version == c.version && last.Type == c.Type {
			return
		}
	}
	if c.Type == "deleted" {
		for key := range h.failing {
			if key.object == c.Object {
				delete(h.failing, key)
			}
		}
	}
	h.changes = append(h.changes, c)
	h.changeBytes += c.byteCount()
	for len(h.changes) > maxChanges || h.changeBytes > maxChangeBytes {
		h.changeBytes -= h.changes[0].byteCount()
		h.changes[0] = nil
		h.changes = h.changes[1:]
	}
}

// reconcilesBetween returns the newest reconciles that fulfil keep, the newest one first, limit at most. Their numbers are
// above after, and below before unless before is 0. isMore is true if there are older ones that fulfil keep.
// missedCount is the number of reconciles above after that are not kept any more.
func (h *history) reconcilesBetween(after, before uint64, limit int, keep func(*reconcile) bool) (found []*reconcile, isMore bool, missedCount uint64) {
	h.mu.Lock()
	all, last := slices.Clone(h.reconciles), h.lastNumber
	h.mu.Unlock()
	if oldest := last - uint64(len(all)) + 1; after > 0 && oldest > after+1 {
		missedCount = oldest - after - 1
	}
	for i := len(all) - 1; i >= 0; i-- {
		r := all[i]
		if r.Number <= after {
			break
		}
		if before != 0 && r.Number >= before || !keep(r) {
			continue
		}
		if len(found) == limit {
			return found, true, missedCount
		}
		found = append(found, r)
	}
	return found, false, missedCount
}

// newestNumber returns the number of the newest reconcile, or 0 before the first one.
func (h *history) newestNumber() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lastNumber
}

// changeBefore returns the newest change of an object and a type that came at a time or earlier. It returns nil if there is
// none that is kept.
func (h *history) changeBefore(o objectName, changeType string, at time.Time) *change {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.changes) - 1; i >= 0; i-- {
		if c := h.changes[i]; c.Object == o && c.Type == changeType && !c.At.After(at) {
			return c
		}
	}
	return nil
}

// changesOf returns the changes of an object, the newest one first.
func (h *history) changesOf(o objectName) (found []*change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.changes) - 1; i >= 0; i-- {
		if h.changes[i].Object == o {
			found = append(found, h.changes[i])
		}
	}
	return found
}

// failingObjects returns the last reconciles of the objects whose last reconcile failed, the newest one first.
func (h *history) failingObjects() (found []*reconcile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.failing {
		// There are few. An instance of slices.SortFunc would make a program 20 KB larger.
		i := len(found)
		found = append(found, r)
		for ; i > 0 && found[i-1].Number < r.Number; i-- {
			found[i] = found[i-1]
		}
		found[i] = r
	}
	return found
}

// wake returns a channel that receives a value after something was added. The caller calls stop at its end.
func (h *history) wake() (waker chan struct{}, stop func()) {
	waker = make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakers[waker] = struct{}{}
	return waker, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.wakers, waker)
	}
}
