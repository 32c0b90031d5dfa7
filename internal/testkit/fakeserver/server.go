// Package fakeserver implements a scripted API server as a [wire.Handler], for tests under
// testing/synctest. It runs no goroutine of its own, reads the time from package time only,
// and keeps objects of any kind in memory.
//
// The server decides as a real API server does wherever the difference can be seen by a
// client:
//
//   - Resource versions are global and increase with every write. A write that changes
//     nothing keeps the version.
//   - The server sets uid, creationTimestamp, generation (by changes outside of metadata and
//     status), deletionTimestamp and managedFields. An object with finalizers stays until the
//     last finalizer is removed.
//   - A server-side apply owns fields. It conflicts with the other owners of a field unless it
//     is forced, and removes the fields that its manager no longer applies.
//   - A write to the status subresource changes the status alone. Any other write changes everything
//     else. An apply of a status ignores metadata.uid.
//   - A watch with a selector reports an object that stops matching as DELETED, in its former
//     state and at the new version.
//   - A watch from a version replays the changes since. A watch from a version that the server has
//     not reached stays silent and skips every event up to this version. A watch from a compacted
//     version ends with 410.
//   - No bookmark is at or below the version that the watch was requested from.
//   - A page of a list has the version of the first page, and expires with its history.
//
// One test holds the same conversations with this server and with a real one, and compares all
// answers: parity_integration_test.go.
//
// The server does not convert between versions of a kind, validates no schema, and knows a few
// associative lists only (see schema). Two kinds of one server must not share a plural.
package fakeserver

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Server is a scripted API server. It is safe for concurrent use.
type Server struct {
	mu     sync.Mutex
	store  *store
	hub    *hub
	writer *writer
	// exchanges holds the requests since the last ForgetRequests.
	exchanges     []Exchange
	before, after func(context.Context, *wire.Request) error
}

// Exchange is one request that the server received.
type Exchange struct {
	At      time.Time
	Request *wire.Request
	// Err is the error that the request was answered with, and nil while it is unanswered.
	Err error
}

// New returns an empty server at version 100.
func New() *Server {
	s := &Server{}
	s.hub = newHub(&s.mu)
	s.store = s.hub.store
	s.writer = newWriter(s.store)
	return s
}

// Client returns a client of the server.
func (s *Server) Client() *kube.Client { return kube.NewClientFromHandler(s) }

// Before makes the server call f before it serves a request. An error is the answer to the
// request. f may block, and may call the server.
func (s *Server) Before(f func(context.Context, *wire.Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// After makes the server call f after a request other than a watch was carried out and before
// it is answered. An error is the answer to the request. f may block, and may call the server.
func (s *Server) After(f func(context.Context, *wire.Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = f
}

// Bookmarks makes watches send a bookmark each period. Default: none but the end of a list.
func (s *Server) Bookmarks(period time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub.bookmarkPeriod = period
}

// RefuseExpiredWatches makes the server refuse a watch from a compacted version with the HTTP
// status 410. Default: the watch is accepted and ends with an ERROR event.
func (s *Server) RefuseExpiredWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub.refusesExpiredWatches = true
}

// IgnoreUpdates makes the server record no owner of fields for requests other than applies. It is for models of
// programs that never apply: to compute the owners takes a third of their time.
func (s *Server) IgnoreUpdates() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writer.ownership.ignoresUpdates = true
}

// Do serves one request.
func (s *Server) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.exchanges = append(s.exchanges, Exchange{At: time.Now(), Request: r})
	i, before, after := len(s.exchanges)-1, s.before, s.after
	s.mu.Unlock()

	response, err := s.serveHooked(ctx, r, before, after)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i < len(s.exchanges) && s.exchanges[i].Request == r {
			s.exchanges[i].Err = err
		}
	}
	return response, err
}

// serveHooked serves a request between the functions of Before and After, and waits while its stream is held.
func (s *Server) serveHooked(
	ctx context.Context, r *wire.Request, before, after func(context.Context, *wire.Request) error,
) (*wire.Response, error) {
	if before != nil {
		if err := before(ctx, r); err != nil {
			return nil, err
		}
	}
	if r.Verb == wire.VerbWatch || r.Verb == wire.VerbList {
		s.mu.Lock()
		held := s.hub.stream(streamOf(r)).held
		s.mu.Unlock()
		if held != nil {
			select {
			case <-held:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	response, err := s.serve(ctx, r)
	if after != nil && r.Verb != wire.VerbWatch {
		if err := after(ctx, r); err != nil {
			return nil, err
		}
	}
	return response, err
}

// serve carries a request out.
func (s *Server) serve(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Verb {
	case wire.VerbWatch:
		return s.hub.watch(ctx, r)
	case wire.VerbList:
		return s.hub.list(r)
	case wire.VerbGet:
		live, err := s.writer.liveObject(r)
		if err != nil {
			return nil, err
		}
		return answer(live, r), nil
	case wire.VerbCreate:
		return s.writer.create(r)
	case wire.VerbUpdate:
		return s.writer.update(r)
	case wire.VerbPatch:
		return s.writer.patch(r)
	case wire.VerbDelete:
		return s.writer.delete(r)
	case wire.VerbDeleteCollection:
		return s.writer.deleteCollection(r)
	}
	return nil, Refusal(r, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
}

// Version returns the newest resource version.
func (s *Server) Version() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.version
}

// Advance raises the version by n, as writes of kinds that nobody watches do.
func (s *Server) Advance(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.version += n
}

// Compact forgets all history. Pages of lists expire, and watches from an older version end
// with 410. Open watches are not affected.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub.forgetHistory()
}

// Snapshot is a backup of a server's state.
type Snapshot struct{ state state }

// Snapshot returns a backup of the present state.
func (s *Server) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{s.store.clone()}
}

// Restore replaces the state by the state of a backup. The version goes back, the history is empty,
// and every open watch is cut.
func (s *Server) Restore(b Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.state = b.state.clone()
	s.hub.forgetHistory()
	s.hub.cutWatches()
}

// Requests returns the requests since the last ForgetRequests, in the order of their arrival.
func (s *Server) Requests() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.exchanges)
}

// ForgetRequests forgets the requests so far.
func (s *Server) ForgetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges = nil
}

// Object returns a copy of the decoded object, or nil if it does not exist.
func (s *Server) Object(plural, namespace, name string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.store.objects[objectID{plural, namespace, name}]; o != nil {
		return clone(o.content)
	}
	return nil
}

// Objects returns copies of the decoded objects of a kind, ordered by namespace and name.
func (s *Server) Objects(plural string) []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []map[string]any
	for _, o := range s.store.sorted() {
		if o.id.plural == plural {
			all = append(all, clone(o.content))
		}
	}
	return all
}

// Put stores an object unchanged, without the fields that a server adds, and returns its version. content
// is called with that version.
func (s *Server) Put(r wire.Resource, namespace, name string, content func(version int) []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.putText(objectID{r.Plural, namespace, name}, content)
	return s.store.version
}

// Store stores an object as if somebody had written it, with a new version, and a uid and a
// generation if it has none. It reports whether anything changed.
func (s *Server) Store(r wire.Resource, namespace, name string, content map[string]any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.store.version
	s.writer.storeObject(r, objectID{r.Plural, namespace, name}, clone(content))
	return s.store.version > version
}

// Remove removes an object at once, whatever finalizers it has. content, if it is not nil,
// returns the object's last state for its version.
func (s *Server) Remove(plural, namespace, name string, content func(version int) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if live := s.store.objects[objectID{plural, namespace, name}]; live != nil {
		s.store.removeObject(live, content)
	}
}

// CollectGarbage deletes every object whose owners are all gone. It goes on until no such object is left, and
// returns the number of deleted objects.
func (s *Server) CollectGarbage() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writer.collectGarbage()
}

// Stream returns the stream with an identity. There need not have been a request for it.
func (s *Server) Stream(id StreamID) *Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hub.stream(id)
}

// Streams returns all streams that were requested or asked for with Stream, in a fixed order.
func (s *Server) Streams() []*Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hub.sortedStreams()
}
