package events

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxSeries is how many series there are at a time. It bounds their memory to about 3 MB.
	maxSeries = 2048
	// maxNotes is how many series there are at a time that differ by their note only.
	maxNotes = 8
)

// table holds the series of a recorder. Its methods may be called concurrently. Only the writer changes which
// occurrences of a series the cluster knows.
type table struct {
	// wake receives a value when a series may be due earlier than before.
	wake chan struct{}

	mu sync.Mutex
	// byKey holds the series of each key, the newest last.
	byKey map[seriesKey][]*series
	// seriesCount is the number of all series.
	seriesCount int
	stats       Stats
	// isClosed is true if the table takes no occurrences, because nobody writes them any more.
	isClosed bool
}

func newTable() *table {
	return &table{wake: make(chan struct{}, 1), byKey: make(map[seriesKey][]*series)}
}

// currentStats returns the counts up to now.
func (t *table) currentStats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Open = t.seriesCount
	return s
}

// countUnnamed counts an occurrence without a series: its object has no name, so no Event can name the object.
func (t *table) countUnnamed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Recorded++
	t.stats.Dropped++
}

// countOccurrence counts an occurrence, and adds the occurrence to the series of its key and note. If the key has
// maxNotes series, the occurrence belongs to the newest of them. countOccurrence returns false if the table is closed.
func (t *table) countOccurrence(k seriesKey, note, resourceVersion string, now time.Time) (isOpen bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Recorded++
	if t.isClosed {
		t.stats.Dropped++
		return false
	}
	siblings := t.byKey[k]
	i := slices.IndexFunc(siblings, func(s *series) bool { return s.note == note })
	if i < 0 && len(siblings) == maxNotes {
		i = maxNotes - 1
	}
	switch {
	case i >= 0:
		s := siblings[i]
		s.count, s.last = s.count+1, now
		if s.isRefused {
			t.stats.Dropped++
		}
	case t.seriesCount == maxSeries && !t.evictLocked():
		t.stats.Dropped++
	default:
		t.byKey[k] = append(t.byKey[k], &series{ // evictLocked may have removed one of the siblings
			seriesKey: k, note: note, resourceVersion: resourceVersion, first: now, last: now, count: 1,
			name: newEventName(k.regarding),
		})
		t.seriesCount++
	}
	select {
	case t.wake <- struct{}{}:
	default: // it has a value already
	}
	return true
}

// evictLocked removes a series to make room. Of the series that the cluster knows completely, it removes the series
// with the oldest last occurrence. It returns false if each series has occurrences that the cluster does not know.
func (t *table) evictLocked() (isRemoved bool) {
	var oldest *series
	for s := range t.allLocked {
		if !s.isPending() && (oldest == nil || s.last.Before(oldest.last)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	t.removeLocked(oldest)
	return true
}

// allLocked yields all series.
func (t *table) allLocked(yield func(*series) bool) {
	for _, siblings := range t.byKey {
		for _, s := range siblings {
			if !yield(s) {
				return
			}
		}
	}
}

// removeLocked removes a series.
func (t *table) removeLocked(s *series) {
	rest := slices.DeleteFunc(t.byKey[s.seriesKey], func(o *series) bool { return o == s })
	if len(rest) == 0 {
		delete(t.byKey, s.seriesKey)
	} else {
		t.byKey[s.seriesKey] = rest
	}
	t.seriesCount--
}

// next returns a series to write now, or nil and when to call next again. It removes the
// series that are over.
func (t *table) next(now time.Time) (*series, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first *series
	var over []*series
	at := now.Add(24 * time.Hour) // a new occurrence wakes the writer earlier
	for s := range t.allLocked {
		due := s.due()
		switch {
		case !s.isPending() && !due.After(now):
			over = append(over, s)
		case due.Before(at):
			first, at = s, due
		}
	}
	for _, s := range over {
		t.removeLocked(s)
	}
	if first == nil || at.After(now) {
		return nil, at
	}
	return first, now
}

// snapshot returns what s is now.
func (t *table) snapshot(s *series) series {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *s
}

// changeSeries calls change with the lock held. change changes a series, and counts what it does in stats.
func (t *table) changeSeries(change func(stats *Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.stats)
}

// open makes the table take occurrences.
func (t *table) open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isClosed = false
}

// close makes the table take no more occurrences. It returns the series that the cluster does not know
// completely.
func (t *table) close() (pending []*series) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isClosed = true
	for s := range t.allLocked {
		if s.isPending() {
			pending = append(pending, s)
		}
	}
	return pending
}

// clear removes all series. Occurrences that the cluster does not know are dropped.
func (t *table) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.allLocked {
		if s.isPending() {
			t.stats.Dropped += uint64(s.count - s.written)
		}
	}
	clear(t.byKey)
	t.seriesCount = 0
}
