// Package follow follows one stream of objects: it lists them, watches them, and returns each change as raw bytes, in
// one ordered sequence that goes on whatever a server does. Package watch says what the sequence guarantees, also after
// the restoration of a server from a backup, and decodes it for authors. The cache and the leader election use the
// sequence itself.
//
// A stream probes for a restoration by itself: see package watch. The streams of a program find restorations together,
// and a [Relister] asks a stream for a fresh list or for a probe: see package internal/cache/internal/restoration.
package follow

import (
	"context"
	"errors"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Changes returns the changes of one stream as a sequence, which ends when ctx ends. The
// requests are made, and the changes yielded, in the goroutine that ranges over the sequence.
// Only the check for a restored server (see package watch) makes its requests in
// a goroutine of its own, which ends before the sequence does.
//
// An error reports a failure that Changes is dealing with; its Change is zero, and the sequence
// goes on after it. A [*wire.DecodeError] reports an object whose metadata cannot be read.
func Changes(ctx context.Context, h wire.Handler, s wire.Stream, options ...Option) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) { runFollower(ctx, h, s, options, yield) }
}

// runFollower does the work of Changes.
func runFollower(ctx context.Context, h wire.Handler, s wire.Stream, options []Option, yield func(Change, error) bool) {
	settings := followSettings{relister: new(Relister)}
	for _, option := range options {
		option(&settings)
	}
	record, unregister := registerSync(ctx, s)
	defer unregister()
	q := sequence{stream: s, yield: yield, tracker: newObjectTracker(s.Cluster), backoff: new(backoff), record: record}
	f := &follower{sequence: &q, watcher: watcher{
		handler: h, sequence: &q, relister: settings.relister, prober: prober{handler: h}, hasPings: true,
	}}
	f.run(ctx)
}

// Option changes how [Changes] follows a stream.
type Option func(*followSettings)

type followSettings struct{ relister *Relister }

// WithRelister lets r ask for fresh lists.
func WithRelister(r *Relister) Option { return func(s *followSettings) { s.relister = r } }

// follower is the state machine behind [Changes]. It has two states: without a version it lists,
// and with a version it watches from there.
type follower struct {
	sequence *sequence
	watcher  watcher
	// isPaged is true if the next list comes in pages.
	isPaged bool
	// endlessListCount is the number of streaming lists in a row that did not come to their end. On a
	// server that does not know streaming lists, no streaming list ends. On a server that stalls
	// for a moment, a later one does.
	endlessListCount int
	// unfinishedListCount is the number of streaming lists in a row that the server has begun, and has ended before they
	// were complete: by an ERROR event, or without any reason. errorEventCount is the number of the latest of them that an
	// ERROR event has ended.
	unfinishedListCount, errorEventCount int
	// failingSince is the time of the first error before the first list was complete.
	failingSince time.Time
}

// unlistedAfter is how long the first list must fail before [ChangeUnlisted] reports that. A list that the server
// forbids is reported at once, because the next try is likely to end alike.
const unlistedAfter = time.Minute

// run lists and watches until ctx ends or the consumer leaves the loop.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.listOrWatch(ctx)
		if f.sequence.stream.IfServed && (kube.IsNoResource(err) || kube.IsNotFound(err)) {
			err = f.handleNotFound(ctx, err)
		}
		if err != nil && !f.handleError(ctx, err) {
			return
		}
	}
}

// listOrWatch makes the list or the watch that is due, and returns at its end.
func (f *follower) listOrWatch(ctx context.Context) error {
	q := f.sequence
	if f.watcher.relister.shouldList() {
		q.version = ""
	}
	q.isListing = q.version == ""
	if !q.isListing {
		return f.watcher.watch(ctx)
	}
	f.watcher.relister.beginList()
	f.watcher.prober.reset()
	if err := q.beginList(); err != nil {
		return err
	}
	if f.isPaged {
		err := f.listPages(ctx)
		f.isPaged = f.shouldPageAgain()
		f.unfinishedListCount, f.errorEventCount = 0, 0
		return err
	}
	err := f.watcher.watch(ctx)
	if !q.isListing {
		f.endlessListCount, f.unfinishedListCount, f.errorEventCount = 0, 0, 0
		return err
	}
	if f.isPaged = f.shouldPage(err); f.isPaged {
		return nil
	}
	return err
}

// shouldPage counts a streaming list that failed with err. It returns whether the list is repeated in pages, at once:
//
//	the server has refused the list, or the list had no end   at the first time
//	the list ended by an ERROR event, or without any reason   at the second time in a row
//
// An API server sends an ERROR event in place of a streaming list if its etcd cannot report the progress of watches. It
// ends a streaming list without any reason if others write more during the list than it keeps for the watch.
func (f *follower) shouldPage(err error) bool {
	switch {
	case isStreamingListFailure(err):
		if isIdle(err) {
			f.endlessListCount++
		}
		return true
	case f.watcher.hasErrorEvent && !kube.HasReason(err, metav1.StatusReasonGone):
		f.unfinishedListCount++
		f.errorEventCount++
	case errors.Is(err, errUnfinished):
		f.unfinishedListCount++
		f.errorEventCount = 0
	}
	return f.unfinishedListCount >= 2
}

// listPages reads the whole state in pages.
func (f *follower) listPages(ctx context.Context) error {
	q := f.sequence
	version := ""
	for page, err := range q.stream.Pages(ctx, f.watcher.handler) {
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := q.putItem(item); err != nil {
				return err
			}
		}
		version = page.ResourceVersion
	}
	if version == "" {
		return watchError(q.stream, errNoVersion)
	}
	return q.endList(version)
}

// shouldPageAgain reports whether the list after a paged list comes in pages too. The result depends on why the former
// was paged:
//
//	the server has refused a streaming list: true
//	one streaming list had no end, perhaps by chance: false, so a streaming list is tried again
//	two streaming lists in a row had no end: true, because the server does not know streaming lists
//	two streaming lists in a row ended by an ERROR event: true
//	two streaming lists in a row ended early in another way: false
func (f *follower) shouldPageAgain() bool {
	if f.unfinishedListCount >= 2 {
		return f.errorEventCount >= 2
	}
	return f.endlessListCount != 1
}

// handleNotFound handles the answer err. The answer reports that the server does not know the resource of the
// stream. Discovery decides: without a successful discovery nothing is concluded. If the server does not serve the
// resource, handleNotFound publishes that there are no objects, and returns nil once the server serves the resource.
// Otherwise it returns the error that the follower has to handle.
//
// A list shows the state at its beginning, or a later one. So discovery is asked again after the list has begun: the
// server may have served the resource since the first answer.
func (f *follower) handleNotFound(ctx context.Context, err error) error {
	q := f.sequence
	check := servedCheck{handler: f.watcher.handler, stream: q.stream}
	isServed, checkErr := check.isServed(ctx)
	switch {
	case checkErr != nil:
		return checkErr
	case isServed:
		return err // discovery and the resource appear and disappear at different moments
	}
	f.watcher.relister.beginList()
	f.watcher.prober.reset()
	q.version = "" // the next list is due, whatever discovery answers
	if err := q.beginList(); err != nil {
		return err
	}
	if isServed, checkErr = check.isServed(ctx); checkErr != nil {
		return checkErr
	}
	if isServed {
		return err
	}
	if err := q.endUnservedList(); err != nil {
		return err
	}
	if !f.isPaged {
		f.endlessListCount = 0
	}
	return check.wait(ctx, q.publishError)
}

// handleError publishes err and waits as long as err requires. It reports false if the sequence
// is at its end.
func (f *follower) handleError(ctx context.Context, err error) (goesOn bool) {
	if ctx.Err() != nil || errors.Is(err, errStopped) {
		return false
	}
	q := f.sequence
	r := q.backoff.recordError(err, q.version != "")
	if r.needsList {
		q.version = ""
	}
	if r.isReported && !q.yield(Change{}, err) {
		return false
	}
	if !q.isListed && f.failingSince.IsZero() {
		f.failingSince = time.Now()
	}
	isUnlisted := !q.isListed && (kube.IsForbidden(err) || time.Since(f.failingSince) >= unlistedAfter)
	if isUnlisted && q.publish(Change{Type: ChangeUnlisted}) != nil {
		return false
	}
	return clock.SleepReal(ctx, r.delay) == nil
}

// isStreamingListFailure reports whether a list failed as streaming lists fail on a server that does not know them: the
// server has refused the list, or the list had no end. Such a server may ignore the parameters of a streaming list, and
// just watch.
func isStreamingListFailure(err error) bool {
	return isIdle(err) || kube.IsInvalid(err) || kube.HasReason(err, metav1.StatusReasonBadRequest)
}

type withoutWaitingKey struct{}

// WithoutWaiting returns a context in which watch.Until returns reason at once. It is for callers of functions
// that must not wait, such as a controller.
func WithoutWaiting(ctx context.Context, reason error) context.Context {
	return context.WithValue(ctx, withoutWaitingKey{}, reason)
}

// WaitingRefusal returns the reason of [WithoutWaiting], or nil if a function may wait.
func WaitingRefusal(ctx context.Context) error {
	reason, _ := ctx.Value(withoutWaitingKey{}).(error)
	return reason
}
