package follow

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// SyncTracker records which streams have been listed, and which ones watch. A program that reports itself as ready
// only when its streams are complete puts one into the context of its functions, with
// [WithSyncTracker], and asks [SyncTracker.States]. It may be used by several goroutines.
type SyncTracker struct {
	mu sync.Mutex
	// streams has an element for each running sequence of [Changes].
	streams map[*wire.Stream]*StreamState
}

// StreamState is what a SyncTracker knows of a stream.
type StreamState struct {
	Stream wire.Stream
	// Synced is true once the first list is complete.
	Synced bool
	// Unlisted is true if the first list has failed, and may fail for long: see [ChangeUnlisted].
	Unlisted bool
	// Watching is true while the watch is open, or there is nothing to watch because the server does not serve the
	// resource.
	Watching bool
	// LastEvent is when the last change or bookmark came. It is zero before the first one.
	LastEvent time.Time
}

// recordLocked records that the stream publishes c.
func (s *StreamState) recordLocked(c Change) {
	switch c.Type {
	case ChangeWatchOpened:
		s.Watching = true
	case ChangeWatchEnded:
		s.Watching = false
	case ChangeListStarted:
	case ChangeUnlisted:
		s.Unlisted = true
	case ChangeListed:
		s.Unlisted = false
		s.Synced, s.Watching, s.LastEvent = true, c.IsUnserved, time.Now() // the watch is opened afterwards
	default:
		s.LastEvent = time.Now()
	}
}

// NewSyncTracker returns a SyncTracker without streams.
func NewSyncTracker() *SyncTracker { return &SyncTracker{streams: make(map[*wire.Stream]*StreamState)} }

// States returns the states of the followed streams, each once, in no particular order. A stream that several calls of
// Changes follow is synced and watches if all of them do.
func (t *SyncTracker) States() (states []StreamState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s, state := range t.streams {
		i := slices.IndexFunc(states, func(other StreamState) bool { return other.Stream == *s })
		if i < 0 {
			states = append(states, *state)
			continue
		}
		states[i].Synced = states[i].Synced && state.Synced
		states[i].Unlisted = states[i].Unlisted || state.Unlisted
		states[i].Watching = states[i].Watching && state.Watching
		if state.LastEvent.Before(states[i].LastEvent) {
			states[i].LastEvent = state.LastEvent
		}
	}
	return states
}

// syncTrackerKey is the key of the SyncTracker in a context.
type syncTrackerKey struct{}

// WithSyncTracker returns a context with t, or without a SyncTracker if t is nil. A sequence of [Changes] with this
// context is registered with t until the sequence ends. The same holds for watch.Events.
func WithSyncTracker(ctx context.Context, t *SyncTracker) context.Context {
	return context.WithValue(ctx, syncTrackerKey{}, t)
}

// registerSync registers s with the SyncTracker of ctx, if ctx has one. record records that s publishes a change.
// unregister ends the registration.
func registerSync(ctx context.Context, s wire.Stream) (record func(Change), unregister func()) {
	t, _ := ctx.Value(syncTrackerKey{}).(*SyncTracker)
	if t == nil {
		return func(Change) {}, func() {}
	}
	state := &StreamState{Stream: s}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams[&s] = state
	return func(c Change) {
			t.mu.Lock()
			defer t.mu.Unlock()
			state.recordLocked(c)
		}, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			delete(t.streams, &s)
		}
}
