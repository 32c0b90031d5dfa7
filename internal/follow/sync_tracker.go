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
	// streams has an element for each call of Follow that runs, which is true once its first list is complete.
	streams map[*wire.Stream]bool
}

// NewSyncTracker returns a SyncTracker without streams.
func NewSyncTracker() *SyncTracker { return &SyncTracker{streams: make(map[*wire.Stream]bool)} }

// Unsynced returns the followed streams whose first list is not complete, each once, in no particular order.
// A stream that several calls of Follow follow is unsynced until all of them have listed it.
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

// WithSyncTracker returns a context with t, or without a SyncTracker if t is nil. [Stream] and [Events] with this context register the
// streams that they follow with t, until their sequence ends.
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
