package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// requestRecorder records what one reconcile reads and writes. It is the outermost handler of the
// reconcile's client.
type requestRecorder struct {
	next wire.Handler
	// endCause returns why the reconcile's context has ended, or nil. A call that ignores its context must not write when
	// another instance may have taken over.
	endCause func() error
	// hasEnded is true once the reconcile has returned.
	hasEnded atomic.Bool
	// reportUncachedList receives the lists that the server has answered.
	reportUncachedList func(*wire.Request)

	mu     sync.Mutex
	reads  int
	writes []WriteReport
}

// newRequestRecorder returns the requestRecorder of one reconcile, whose context is ctx.
func newRequestRecorder(ctx context.Context) *requestRecorder {
	return &requestRecorder{endCause: func() error { return context.Cause(ctx) }}
}

// errReturned is the error of a write after the end of its reconcile. The object may be gone by then, or another worker
// may reconcile it.
var errReturned = errors.New("the reconcile of this client has returned: wait for what it has started before it returns, or write by the client of an operator.Task")

// end makes the client refuse further writes, because the reconcile has returned.
func (q *requestRecorder) end() { q.hasEnded.Store(true) }

// HasChildGuard reports to package kube that the handlers of the client refuse applies to foreign children:
// [adoption.Guard], a handler below requestRecorder, does. Package kube asks the outermost handler only, which
// requestRecorder is.
func (q *requestRecorder) HasChildGuard() bool { return true }

// Do serves one request.
func (q *requestRecorder) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if r.Verb.IsWrite() && q.hasEnded.Load() {
		return nil, fmt.Errorf("%s %s: %w", r.Verb, r.Ref(), errReturned)
	}
	if err := q.endCause(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Verb, r.Ref(), err)
	}
	response, err := q.next.Do(ctx, r)
	if r.Verb == wire.VerbList && err == nil && !response.Cached {
		q.reportUncachedList(r)
	}
	if !r.Verb.IsWrite() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.reads++
		return response, err
	}
	w := WriteReport{Verb: r.Verb, Object: r.Ref(), Subresource: r.Subresource}
	w.Skipped, w.Failed = err == nil && response.Cached, err != nil
	if w.Object.Name = r.ObjectName(); w.Object.Name == "" && err == nil {
		w.Object.Name = nameOf(response.Body) // the server generated the name
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writes = append(q.writes, w)
	return response, err
}

// nameOf returns the name of the object in body, or nothing.
func nameOf(body []byte) string {
	var object metav1.PartialObjectMetadata
	if kube.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.Name
}

// recorded returns the number of reads, and the writes, so far.
func (q *requestRecorder) recorded() (reads int, writes []WriteReport) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reads, q.writes
}
