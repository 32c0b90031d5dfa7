package watch

import (
	"context"
	"slices"
	"sync"

	"github.com/yare-go/yare/kube"
)

// SyncTracker records which streams have been listed. A program that reports itself as ready
// only when its streams are complete puts one into the context of its functions, with
// [WithSyncTracker], and asks [SyncTracker.Unsynced]. It may be used by several goroutines.
type SyncTracker struct {
	mu sync.Mutex
	// entries holds one entry for each call of Follow that runs.
	entries map[*syncEntry]bool // whether its first list is complete
}

// NewSyncTracker returns a SyncTracker without streams.
func NewSyncTracker() *SyncTracker { return &SyncTracker{entries: make(map[*syncEntry]bool)} }

// Unsynced returns the followed streams whose first list is not complete, each once, in no particular order.
// A stream that several calls of Follow follow is unsynced until all of them have listed it.
func (t *SyncTracker) Unsynced() []kube.Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	var unsynced []kube.Stream
	for e, synced := range t.entries {
		if !synced && !slices.Contains(unsynced, e.stream) {
			unsynced = append(unsynced, e.stream)
		}
	}
	return unsynced
}

// syncTrackerKey is the key of the SyncTracker in a context.
type syncTrackerKey struct{}

// WithSyncTracker returns a context with t. [Follow] and [Events] with this context register the
// streams that they follow with t, until their sequence ends.
func WithSyncTracker(ctx context.Context, t *SyncTracker) context.Context {
	return context.WithValue(ctx, syncTrackerKey{}, t)
}

// syncEntry is one call of Follow in a SyncTracker. A nil *syncEntry does nothing.
type syncEntry struct {
	tracker *SyncTracker
	stream  kube.Stream
}

// registerSync registers s with the SyncTracker of ctx. It returns nil if ctx has none.
func registerSync(ctx context.Context, s kube.Stream) *syncEntry {
	t, _ := ctx.Value(syncTrackerKey{}).(*SyncTracker)
	if t == nil {
		return nil
	}
	e := &syncEntry{tracker: t, stream: s}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries[e] = false
	return e
}

// markSynced records that the stream has been listed.
func (e *syncEntry) markSynced() {
	if e == nil {
		return
	}
	e.tracker.mu.Lock()
	defer e.tracker.mu.Unlock()
	e.tracker.entries[e] = true
}

// unregister removes the entry.
func (e *syncEntry) unregister() {
	if e == nil {
		return
	}
	e.tracker.mu.Lock()
	defer e.tracker.mu.Unlock()
	delete(e.tracker.entries, e)
}
