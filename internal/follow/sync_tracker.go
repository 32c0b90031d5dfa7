package follow

import (
	"context"
	"slices"
	"sync"

	"github.com/yare-go/yare/kube/wire"
)

// SyncTracker records which streams have been listed. A program that reports itself as ready
// only when its streams are complete puts one into the context of its functions, with
// [WithSyncTracker], and asks [SyncTracker.Unsynced]. It may be used by several goroutines.
type SyncTracker struct {
	mu sync.Mutex
	// streams has an element for each running sequence of [Changes]. The element is true once the first list is complete.
	streams map[*wire.Stream]bool
}

// NewSyncTracker returns a SyncTracker without streams.
func NewSyncTracker() *SyncTracker { return &SyncTracker{streams: make(map[*wire.Stream]bool)} }

// Unsynced returns the followed streams whose first list is not complete, each once, in no particular order.
// A stream that several sequences follow is unsynced until each of them has listed it.
func (t *SyncTracker) Unsynced() []wire.Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	var unsynced []wire.Stream
	for s, isSynced := range t.streams {
		if !isSynced && !slices.Contains(unsynced, *s) {
			unsynced = append(unsynced, *s)
		}
	}
	return unsynced
}

// syncTrackerKey is the key of the SyncTracker in a context.
type syncTrackerKey struct{}

// WithSyncTracker returns a context with t, or without a SyncTracker if t is nil. A sequence of [Changes] with this
// context is registered with t until the sequence ends. The same holds for watch.Events.
func WithSyncTracker(ctx context.Context, t *SyncTracker) context.Context {
	return context.WithValue(ctx, syncTrackerKey{}, t)
}

// registerSync registers s with the SyncTracker of ctx, if ctx has one. markSynced records that s has been listed.
// unregister ends the registration.
func registerSync(ctx context.Context, s wire.Stream) (markSynced, unregister func()) {
	t, _ := ctx.Value(syncTrackerKey{}).(*SyncTracker)
	if t == nil {
		return func() {}, func() {}
	}
	record := func(isSynced bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.streams[&s] = isSynced
	}
	record(false)
	return func() { record(true) }, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.streams, &s)
	}
}
