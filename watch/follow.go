package watch

import (
	"context"
	"errors"
	"iter"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

const (
	// quietBusyAnswers is the number of answers in a row that may ask to come later before
	// such an answer is reported.
	quietBusyAnswers = 3
	// maxVersionRefusals is the number of answers in a row that refuse a version until the
	// version is given up.
	maxVersionRefusals = 4
)

// errStopped ends a sequence whose consumer has left the loop.
var errStopped = errors.New("the consumer has left the loop")

// Follow returns the changes of one stream as a sequence, which ends when ctx ends. The
// requests are made, and the changes yielded, in the goroutine that ranges over the sequence.
// Only the check for a restored server (see the package documentation) makes its requests in
// a goroutine of its own, which ends before the sequence does.
//
// An error reports a failure that Follow is dealing with; its Change is zero, and the sequence
// goes on after it. A [*kube.DecodeError] reports an object whose metadata cannot be read.
func Follow(ctx context.Context, h kube.Handler, s kube.Stream, options ...FollowOption) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) { runFollower(ctx, h, s, options, yield) }
}

// runFollower does the work of Follow.
func runFollower(ctx context.Context, h kube.Handler, s kube.Stream, options []FollowOption, yield func(Change, error) bool) {
	f := &follower{
		handler: h, stream: s, yield: yield, pings: true,
		tracker: newObjectTracker(s.Cluster), synced: registerSync(ctx, s), relister: new(Relister),
	}
	for _, option := range options {
		option(f)
	}
	defer f.synced.unregister()
	f.run(ctx)
}

// follower is the state machine behind Follow. It has two states: without a version it lists,
// and with a version it watches from there.
type follower struct {
	handler kube.Handler
	stream  kube.Stream
	yield   func(Change, error) bool
	tracker objectTracker
	backoff backoff
	// relister receives requests for a fresh list. It is never nil.
	relister *Relister
	// synced is the entry in the SyncTracker of the context. It is nil without one.
	synced *syncEntry

	// version is the resource version to watch from: the version of a complete list, of its end
	// mark, of an event after it, or of a bookmark. It is empty when a list is due.
	version string
	// reached is the version that the stream has reached, even when a list is due. It is empty
	// before the first list.
	reached string
	// listing is true from the beginning of a list to its end. The versions of objects in
	// between are in no order.
	listing bool
	// paged is true if the next list comes in pages.
	paged bool
	// endlessLists counts the streaming lists in a row that did not come to their end. On a
	// server that does not know streaming lists, no streaming list ends. On a server that stalls
	// for a moment, a later one does.
	endlessLists int

	// open is true while a watch is open: see ChangeWatchOpened.
	open bool
	// progressed is true if the current watch has advanced version.
	progressed bool
	// bookmarked is true if the current watch has brought a bookmark besides the end of a
	// list. The next watch need not bring one: a server sends none for some resources, and
	// none before it has seen an event itself.
	bookmarked bool
	// pings is true if the transport noticed by pings that the connection of the latest watch
	// was dead.
	pings bool
	// interrupted is true if a watch from version has ended in another way than the server
	// was asked for, so that the server may have been restored meanwhile: see probe.
	interrupted bool
	// probe runs while the current watch is silent after an interruption. It may be nil.
	probe *probe
}

// run lists and watches until ctx ends or the consumer leaves the loop.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.step(ctx)
		if f.stream.IfServed && (kube.IsNoResource(err) || kube.IsNotFound(err)) {
			err = f.handleNotFound(ctx, err)
		}
		if err != nil && !f.handleError(ctx, err) {
			return
		}
	}
}

// step makes the list or the watch that is due, and returns at its end.
func (f *follower) step(ctx context.Context) error {
	if f.relister.isDue() {
		f.version = ""
	}
	f.listing = f.version == ""
	if !f.listing {
		return f.watch(ctx)
	}
	if err := f.beginList(); err != nil {
		return err
	}
	if !f.paged {
		err := f.watch(ctx)
		if !f.listing || !isStreamingRefusal(err) {
			return err
		}
		if isIdle(err) {
			f.endlessLists++
		}
		f.paged = true
		return nil
	}
	err := f.listPages(ctx)
	if f.endlessLists == 1 {
		f.paged = false // one streaming list may fail by chance
	}
	return err
}

// beginList records and publishes that a list begins.
func (f *follower) beginList() error {
	f.listing = true
	f.relister.beginList()
	f.tracker.startList()
	return f.publish(Change{Type: ChangeListStarted})
}

// handleError publishes err and waits as long as err requires. It reports false if the sequence
// is at its end.
func (f *follower) handleError(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, errStopped) {
		return false
	}
	b := &f.backoff
	var n int // the failures of this kind in a row
	report := true
	switch {
	case errors.Is(err, errRestored):
		f.version = ""
	case errors.Is(err, errRelist):
		f.version = ""
		n, report = b.lostVersions, false
		b.lostVersions++
	case kube.IsGone(err):
		// A version expires sooner or later. The fresh list waits only if the list before
		// was of no use.
		f.version = ""
		n, report = b.lostVersions, b.lostVersions > 0
		b.lostVersions++
	case errors.Is(err, errEndedEarly) && f.progressed:
		n, report = 1, false
	case kube.IsTooManyRequests(err), isVersionTooLarge(err):
		// A server answers so when it is busy for a moment, when it has just started, when a
		// custom resource is new to it, and while it lags behind etcd.
		b.busyAnswers++
		n, report = b.busyAnswers, b.busyAnswers > quietBusyAnswers
	default:
		b.failures++
		n = b.failures
	}
	if f.version != "" && isVersionRefusal(err) {
		if b.versionRefusals++; b.versionRefusals >= maxVersionRefusals {
			f.version = ""
			b.versionRefusals = 0
			n = max(n, b.lostVersions)
			b.lostVersions++
		}
	}
	if report && !f.yield(Change{}, err) {
		return false
	}
	return clock.SleepReal(ctx, backoffDelay(err, n)) == nil
}

// publish yields c. It returns errStopped if the consumer has left the loop.
func (f *follower) publish(c Change) error {
	if !f.yield(c, nil) {
		return errStopped
	}
	return nil
}

// publishError yields err. It returns errStopped if the consumer has left the loop.
func (f *follower) publishError(err error) error {
	if !f.yield(Change{}, err) {
		return errStopped
	}
	return nil
}

// isStreamingRefusal reports whether a list was refused because it is a streaming list, or did not
// come to its end. A server that does not know streaming lists ignores the parameters that ask
// for one, and just watches.
func isStreamingRefusal(err error) bool {
	return isIdle(err) || kube.IsInvalid(err) || kube.IsBadRequest(err)
}

// isVersionRefusal reports whether an answer to a watch may be due to its version. Answers about
// permissions or about what is served, and answers of a server that is away or busy, are not.
func isVersionRefusal(err error) bool {
	e, ok := kube.AsError(err)
	if !ok {
		return false
	}
	if errors.Is(err, errBadFrame) {
		return true
	}
	switch e.Code {
	case 0, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout,
		http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return false
	case http.StatusGatewayTimeout:
		return isVersionTooLarge(err)
	}
	return true
}

// isVersionTooLarge reports whether the server has not reached the version that it was asked
// for. API servers that lag behind etcd give lists this answer. A watch from such a version is
// silent until the server reaches the version.
func isVersionTooLarge(err error) bool {
	e, ok := kube.AsError(err)
	if !ok || e.Answer.Details == nil {
		return false
	}
	for _, cause := range e.Answer.Details.Causes {
		if cause.Type == metav1.CauseTypeResourceVersionTooLarge {
			return true
		}
	}
	return false
}
