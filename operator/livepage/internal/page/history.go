package page

import (
	"slices"
	"sync"
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
	// failing holds the last reconcile of each object whose last reconcile failed, without its requests. The newest one is
	// the last one.
	failing []*reconcile
	// added is closed when the next reconcile is added. It is nil if nobody waits for that.
	added chan struct{}
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
	h.removeFailingLocked(r.Object, r.Controller)
	if r.Error != "" {
		failed := *r
		failed.Causes, failed.Reads, failed.Writes = "", nil, nil // they are large
		h.failing = append(h.failing, &failed)
		h.failing = h.failing[max(0, len(h.failing)-maxFailing):]
	}
	if h.added != nil {
		close(h.added)
		h.added = nil
	}
}

// removeFailingLocked removes the failed reconciles of an object by a controller, or by all controllers if controller
// is empty.
func (h *history) removeFailingLocked(o objectName, controller string) {
	if len(h.failing) == 0 {
		return
	}
	kept := make([]*reconcile, 0, len(h.failing)+1) // a reader may have the old ones
	for _, r := range h.failing {
		if r.Object != o || controller != "" && r.Controller != controller {
			kept = append(kept, r)
		}
	}
	h.failing = kept
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
		h.removeFailingLocked(c.Object, "")
	}
	h.changes = append(h.changes, c)
	h.changeBytes += c.byteCount()
	for len(h.changes) > maxChanges || h.changeBytes > maxChangeBytes {
		h.changeBytes -= h.changes[0].byteCount()
		h.changes[0] = nil
		h.changes = h.changes[1:]
	}
}

// reconcilesBetween returns the newest reconciles that fulfil keep, the newest one first, limit at most. Their numbers
// are above after, and below before unless before is 0. isMore is true if there are older ones that fulfil keep.
// missedCount is the number of reconciles above after that are not kept any more.
func (h *history) reconcilesBetween(
	after, before uint64, limit int, keep func(*reconcile) bool,
) (found []*reconcile, isMore bool, missedCount uint64) {
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
	number := h.lastNumber
	h.mu.Unlock()
	return number
}

// changesOf returns the changes of an object, the newest one first.
func (h *history) changesOf(o objectName) (found []*change) {
	h.mu.Lock()
	for i := len(h.changes) - 1; i >= 0; i-- {
		if h.changes[i].Object == o {
			found = append(found, h.changes[i])
		}
	}
	h.mu.Unlock()
	return found
}

// failingObjects returns the last reconciles of the objects whose last reconcile failed, the newest one last. The
// caller must not change them.
func (h *history) failingObjects() []*reconcile {
	h.mu.Lock()
	failing := h.failing
	h.mu.Unlock()
	return failing
}

// nextAddition returns a channel that is closed when the next reconcile is added.
func (h *history) nextAddition() <-chan struct{} {
	h.mu.Lock()
	if h.added == nil {
		h.added = make(chan struct{})
	}
	added := h.added
	h.mu.Unlock()
	return added
}
