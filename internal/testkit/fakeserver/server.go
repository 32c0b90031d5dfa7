package fakeserver

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// Server is a scripted API server. It is safe for concurrent use.
type Server struct {
	mu sync.Mutex
	state
	// history holds the changes after the version compacted, oldest first.
	history   []change
	compacted int
	// uids counts the uids that were given out. It never goes back.
	uids    int
	streams map[StreamID]*Stream
	// pages holds the rest of each list that was answered in part.
	pages map[string]pages
	// exchanges holds the requests since the last ForgetRequests.
	exchanges []Exchange

	before, after func(context.Context, *kube.Request) error
	bookmarks     time.Duration
	statusGone    bool
}

// state is the content of a backup.
type state struct {
	version int
	objects map[objectID]*object
}

// Exchange is one request that the server received.
type Exchange struct {
	At      time.Time
	Request *kube.Request
	// Err is the error that the request was answered with, and nil while it is unanswered.
	Err error
}

// New returns an empty server at version 100.
func New() *Server {
	return &Server{
		state:   state{version: 100, objects: make(map[objectID]*object)},
		streams: make(map[StreamID]*Stream), pages: make(map[string]pages),
	}
}

// Client returns a client of the server.
func (s *Server) Client() *kube.Client { return kube.NewClientFromHandler(s) }

// Before makes the server call f before it serves a request. An error is the answer to the
// request. f may block, and may call the server.
func (s *Server) Before(f func(context.Context, *kube.Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// After makes the server call f after a request other than a watch was carried out and before
// it is answered. An error is the answer to the request. f may block, and may call the server.
func (s *Server) After(f func(context.Context, *kube.Request) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = f
}

// Bookmarks makes watches send a bookmark each period. Default: none but the end of a list.
func (s *Server) Bookmarks(period time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bookmarks = period
}

// RefuseExpiredWatches makes the server refuse a watch from a compacted version with the HTTP
// status 410. Default: the watch is accepted and ends with an ERROR event.
func (s *Server) RefuseExpiredWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statusGone = true
}

// Do serves one request.
func (s *Server) Do(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.exchanges = append(s.exchanges, Exchange{At: time.Now(), Request: r})
	i, before, after := len(s.exchanges)-1, s.before, s.after
	s.mu.Unlock()

	response, err := s.do(ctx, r, before, after)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i < len(s.exchanges) && s.exchanges[i].Request == r {
			s.exchanges[i].Err = err
		}
	}
	return response, err
}

func (s *Server) do(ctx context.Context, r *kube.Request, before, after func(context.Context, *kube.Request) error) (*kube.Response, error) {
	if before != nil {
		if err := before(ctx, r); err != nil {
			return nil, err
		}
	}
	if r.Verb == kube.VerbWatch || r.Verb == kube.VerbList {
		s.mu.Lock()
		held := s.stream(streamOf(r)).held
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
	if after != nil && r.Verb != kube.VerbWatch {
		if err := after(ctx, r); err != nil {
			return nil, err
		}
	}
	return response, err
}

func (s *Server) serve(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Verb {
	case kube.VerbWatch:
		return s.watch(ctx, r)
	case kube.VerbList:
		return s.list(r)
	case kube.VerbGet:
		live, err := s.live(r)
		if err != nil {
			return nil, err
		}
		return answer(live, r), nil
	case kube.VerbCreate:
		return s.create(r)
	case kube.VerbUpdate:
		return s.update(r)
	case kube.VerbPatch:
		return s.patch(r)
	case kube.VerbDelete:
		return s.delete(r)
	case kube.VerbDeleteCollection:
		return s.deleteCollection(r)
	}
	return nil, Refusal(r, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
}

// Version returns the newest resource version.
func (s *Server) Version() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Advance raises the version by n, as writes of kinds that nobody watches do.
func (s *Server) Advance(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version += n
}

// Compact forgets all history. Pages of lists expire, and watches from an older version end
// with 410. Open watches are not affected.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compact()
}

func (s *Server) compact() {
	s.compacted, s.history = s.version, nil
	clear(s.pages)
}

// Snapshot is a backup of a server's state.
type Snapshot struct{ state state }

// Snapshot returns a backup of the present state.
func (s *Server) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{state{version: s.version, objects: maps.Clone(s.objects)}}
}

// Restore replaces the state by the state of a backup. The version goes back, the history is empty,
// and every open watch is cut.
func (s *Server) Restore(b Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state{version: b.state.version, objects: maps.Clone(b.state.objects)}
	s.compact()
	for _, stream := range s.streams {
		stream.cut(errReset)
	}
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
	if o := s.objects[objectID{plural, namespace, name}]; o != nil {
		return clone(o.content)
	}
	return nil
}

// Objects returns copies of the decoded objects of a kind, ordered by namespace and name.
func (s *Server) Objects(plural string) []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []map[string]any
	for _, o := range s.sorted() {
		if o.id.plural == plural {
			all = append(all, clone(o.content))
		}
	}
	return all
}

// sorted returns the objects ordered by kind, namespace and name.
func (s *Server) sorted() []*object {
	return slices.SortedFunc(maps.Values(s.objects), func(a, b *object) int { return a.id.compare(b.id) })
}

// Refusal returns the error that a server answers r with. The fields are the causes.
func Refusal(r *kube.Request, code int, reason metav1.StatusReason, fields ...string) *kube.Error {
	e := &kube.Error{Verb: r.Verb, Ref: r.Ref(), Subresource: r.Subresource, Code: code, Answer: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "refused",
		Details: &metav1.StatusDetails{Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Plural},
	}}
	for _, field := range fields {
		e.Answer.Details.Causes = append(e.Answer.Details.Causes, metav1.StatusCause{Field: field})
	}
	return e
}

func refusalOf(r *kube.Request, code int, reason metav1.StatusReason, message string) *kube.Error {
	e := Refusal(r, code, reason)
	e.Answer.Message = message
	return e
}

// badRequest returns the answer to a request that a server cannot read.
func badRequest(r *kube.Request, message string) *kube.Error {
	e := refusalOf(r, http.StatusBadRequest, metav1.StatusReasonBadRequest, message)
	e.Answer.Details = nil
	return e
}

// serverError returns the answer 500 without a reason, for a request that fails inside the server.
func serverError(r *kube.Request, message string) *kube.Error {
	e := refusalOf(r, http.StatusInternalServerError, "", message)
	e.Answer.Details, e.Unknown = nil, r.Verb.IsWrite()
	return e
}

// invalid returns the answer to a request whose object, or whose parameter, is not allowed. The
// server names the kind and not the resource then.
func invalid(r *kube.Request, cause metav1.CauseType, field string) *kube.Error {
	e := refusalOf(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, field+": "+string(cause))
	e.Answer.Details.Kind = r.Resource.Kind
	e.Answer.Details.Causes = []metav1.StatusCause{{Type: cause, Field: field}}
	return e
}

// invalidOptions returns the answer to a request with a parameter that is not allowed.
func invalidOptions(r *kube.Request, kind string, cause metav1.CauseType, field string) *kube.Error {
	e := invalid(r, cause, field)
	e.Answer.Details.Name, e.Answer.Details.Group, e.Answer.Details.Kind = "", "meta.k8s.io", kind
	return e
}
