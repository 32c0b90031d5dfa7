package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

var (
	errNoName     = errors.New("it has no name")
	errSilent     = errors.New("the watch fell silent")
	errOverdue    = errors.New("the server did not end the watch when it was asked to")
	errNoVersion  = errors.New("the list has no resourceVersion")
	errAtOnce     = errors.New("the server ended the watch at once")
	errNoStream   = errors.New("the handler answered a watch without a stream")
	errUnfinished = errors.New("the server ended the list before it was complete")
	errStopped    = errors.New("the consumer stopped")
)

const (
	// The server is asked to end each watch after five to ten minutes, so that clients
	// spread over its replicas again.
	shortestWatch = 5 * time.Minute
	// A watch that outlives that by this much hangs.
	overdue = 30 * time.Second
	// Servers that send bookmarks send one about every minute: without any sign of life
	// for this long, the connection is dead, whatever the transport believes.
	silence = 150 * time.Second
	// A streaming list that says nothing for this long is given up: it has been accepted, and
	// servers begin at once.
	listSilence = 15 * time.Second
	// As many times in a row may the server ask to wait before that is reported.
	quietWaits = 3
	// A watch that ended sooner than this without any event is a failure.
	atOnce = time.Second
)

// Follow tells the changes of one stream until ctx ends or the loop is left, in the
// calling goroutine. An error is a report of trouble that is being dealt with; the
// sequence goes on after it. A [*kube.DecodeError] is an object whose metadata cannot be
// read.
func Follow(ctx context.Context, h kube.Handler, s kube.Stream) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		f := &follower{handler: h, stream: s, yield: yield, known: newKnown()}
		f.synced = registerSync(ctx, s)
		defer f.synced.unregister()
		f.run(ctx)
	}
}

// follower is the state machine behind Follow. It is in one of two states: without a
// version it needs a list, with one it can watch from there.
type follower struct {
	handler kube.Handler
	stream  kube.Stream
	yield   func(Change, error) bool
	known   known
	backoff backoff

	// version is the resourceVersion to go on from: that of a finished list, of its end
	// mark, of an event after it, or of a bookmark. It is empty when a list is due.
	version string
	// listing is true from the beginning of a list to its end. The versions of objects that
	// come in between are in no order.
	listing bool
	// open is true from the moment a watch is open until its end: see ChangeWatchOpened.
	open bool
	// synced is the entry in the SyncTracker of the context. It is nil without one.
	synced *syncEntry
	// progressed is true once the current watch has moved version.
	progressed bool
	// paged is true once the server has shown that it cannot stream lists.
	paged bool
	// silentLists are the streaming lists in a row that ended in silence. A server that does
	// not know them is silent each time; one that stalls for a moment is not.
	silentLists int
	// bookmarks is true once the server has sent one besides the end of a list: for some
	// resources it marks that end, and keeps silent afterwards.
	bookmarks bool
}

func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		streaming := !f.paged
		err := f.step(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, errStopped):
			return
		case err == nil:
			continue
		case streaming && f.listing && f.cannotStream(err):
			f.paged = true
			continue
		}
		b := &f.backoff
		before, report := b.failures, true
		switch {
		case kube.IsGone(err), tooNew(err):
			// Part of life. A fresh list follows at once, unless the one before was of no use.
			f.version = ""
			before = b.expiries - 1
			b.expiries++
			if before < 0 {
				continue
			}
		case kube.IsTooManyRequests(err):
			// So it asks when it is busy for a moment, when it has just started, and each time
			// a custom resource is new to it. It is trouble when it goes on.
			before = b.refusals
			b.refusals++
			report = before >= quietWaits
		default:
			b.failures++
		}
		if report && !f.yield(Change{}, err) {
			return
		}
		wait(ctx, err, before)
	}
}

// step does what is due, and returns when something else is.
func (f *follower) step(ctx context.Context) error {
	f.listing = false
	if f.version != "" {
		return f.watch(ctx)
	}
	f.listing = true
	f.known.relist()
	if err := f.publish(Change{Type: ChangeListStarted}); err != nil {
		return err
	}
	if f.paged {
		err := f.listPages(ctx)
		if f.silentLists == 1 {
			f.paged = false // the next list, or attempt at one, tries once more
		}
		return err
	}
	return f.watch(ctx)
}

// listPages reads the whole state in pages.
func (f *follower) listPages(ctx context.Context) error {
	version := ""
	for page, err := range f.stream.Pages(ctx, f.handler) {
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := f.upsert(item); err != nil {
				return err
			}
		}
		version = page.ResourceVersion
	}
	return f.listed(version)
}

// listed ends a list that was read at version: what it did not contain is gone.
func (f *follower) listed(version string) error {
	if version == "" {
		return f.broken(errNoVersion)
	}
	for gone := range f.known.missing {
		if !f.yield(Change{Type: ChangeDeleted, Record: gone}, nil) {
			return errStopped
		}
	}
	f.version, f.listing = version, false
	f.known.reached(version)
	f.backoff.listed()
	if !f.paged {
		f.silentLists = 0
	}
	f.synced.markSynced()
	return f.publish(Change{Type: ChangeListed, Record: Record{ResourceVersion: version}})
}

// publish yields c. It returns errStopped if the consumer has left the loop.
func (f *follower) publish(c Change) error {
	if !f.yield(c, nil) {
		return errStopped
	}
	return nil
}

// publishOpened publishes that the current watch is open.
func (f *follower) publishOpened() error {
	f.open = true
	return f.publish(Change{Type: ChangeWatchOpened})
}

// watch reads one watch to its end, and publishes that it ended if it was open.
func (f *follower) watch(ctx context.Context) error {
	err := f.readWatch(ctx)
	if !f.open || errors.Is(err, errStopped) {
		return err
	}
	f.open = false
	if err := f.publish(Change{Type: ChangeWatchEnded}); err != nil {
		return err
	}
	return err
}

// readWatch reads one watch to its end: from version on, or, without one, from a streaming
// list on.
func (f *follower) readWatch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := shortestWatch + rand.N(shortestWatch)
	parameters := []string{
		"allowWatchBookmarks", "true",
		"resourceVersion", f.version,
		"timeoutSeconds", strconv.Itoa(int(limit / time.Second)),
	}
	list := f.listing
	if list {
		parameters = append(parameters, "sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan")
	}
	started := time.Now()
	f.progressed = false
	response, err := f.handler.Do(ctx, f.stream.Request(kube.VerbWatch, parameters...))
	if err != nil {
		return err
	}
	if response.Stream == nil {
		return f.broken(errNoStream)
	}
	// A read blocks until the stream is closed, which a deadline or the end of ctx do.
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { response.Stream.Close(); close(closed) })
	defer func() {
		if stop() {
			response.Stream.Close()
		} else {
			<-closed
		}
	}()
	overall := time.AfterFunc(limit+overdue, func() { cancel(errOverdue) })
	defer overall.Stop()
	idle := time.AfterFunc(f.patience(limit), func() { cancel(errSilent) })
	defer idle.Stop()

	if !list {
		if err := f.publishOpened(); err != nil {
			return err
		}
	}
	for frame, err := range kube.Frames(response.Stream) {
		if cause := context.Cause(ctx); cause != nil {
			return f.broken(cause)
		}
		if err != nil {
			return f.broken(err)
		}
		// The time that the consumer takes is not the server's silence.
		idle.Stop()
		if err := f.frame(frame); err != nil {
			return err
		}
		idle.Reset(f.patience(limit))
	}
	switch {
	case context.Cause(ctx) != nil:
		return f.broken(context.Cause(ctx))
	case f.listing:
		return f.broken(errUnfinished)
	case time.Since(started) >= atOnce:
		f.backoff.progress()
	case !f.progressed && !list:
		return f.broken(errAtOnce)
	}
	return nil
}

// patience is how long the stream may say nothing.
func (f *follower) patience(limit time.Duration) time.Duration {
	switch {
	case f.listing:
		return listSilence
	case f.bookmarks:
		return silence
	default:
		return limit + overdue
	}
}

// broken is the error of a watch that did not end as it should.
func (f *follower) broken(cause error) error {
	return &kube.Error{
		Verb: kube.VerbWatch, Ref: refOf(f.stream, Record{Namespace: f.stream.Namespace}), Err: cause,
	}
}

// frame takes in one event of the server's.
func (f *follower) frame(frame kube.Frame) error {
	switch frame.Type {
	case "ADDED", "MODIFIED":
		if err := f.upsert(frame.Object); err != nil {
			return err
		}
	case "DELETED":
		if err := f.remove(frame.Object); err != nil {
			return err
		}
	case "BOOKMARK":
		return f.bookmark(frame.Object)
	case "ERROR":
		return f.stream.StatusError(frame.Object)
	default:
		return f.broken(fmt.Errorf("the server sent an event of the unknown type %q", frame.Type))
	}
	return nil
}

func (f *follower) bookmark(object []byte) error {
	var mark struct {
		Metadata struct {
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := kube.Unmarshal(object, &mark); err != nil {
		return f.broken(fmt.Errorf("read a bookmark: %w", err))
	}
	if !f.listing {
		f.bookmarks = true
		f.advance(mark.Metadata.ResourceVersion)
		if !f.yield(Change{Type: ChangeBookmark, Record: Record{ResourceVersion: f.version}}, nil) {
			return errStopped
		}
		return nil
	}
	if mark.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		if err := f.listed(mark.Metadata.ResourceVersion); err != nil {
			return err
		}
		return f.publishOpened()
	}
	return nil
}

// advance moves the version to go on from, which never goes back: a server that repeats
// itself makes no progress.
func (f *follower) advance(version string) {
	if f.listing || version == "" || version == f.version || older(version, f.version) {
		return
	}
	f.version = version
	f.known.reached(version)
	f.progressed = true
	f.backoff.progress()
}

// upsert takes in an object that is there.
func (f *follower) upsert(object []byte) error {
	r, err := recordOf(f.stream, object)
	if err != nil {
		return f.report(err)
	}
	replaced, change := f.known.put(r)
	if replaced != nil && !f.yield(Change{Type: ChangeDeleted, Record: *replaced}, nil) {
		return errStopped
	}
	if change != 0 && !f.yield(Change{Type: change, Record: r, Object: object}, nil) {
		return errStopped
	}
	f.advance(r.ResourceVersion)
	return nil
}

// remove takes in an object that is not there any more.
func (f *follower) remove(object []byte) error {
	r, err := recordOf(f.stream, object)
	if err != nil {
		return f.report(err)
	}
	if f.known.remove(r, f.listing) && !f.yield(Change{Type: ChangeDeleted, Record: r, Object: object}, nil) {
		return errStopped
	}
	f.advance(r.ResourceVersion)
	return nil
}

func (f *follower) report(err error) error {
	if !f.yield(Change{}, err) {
		return errStopped
	}
	return nil
}

// cannotStream tells that a streaming list was refused for what it is, or never ended: a
// server that does not know it ignores what asks for it, and just watches.
func (f *follower) cannotStream(err error) bool {
	if errors.Is(err, errSilent) {
		f.silentLists++
		return true
	}
	return kube.IsInvalid(err) || kube.IsBadRequest(err)
}

// tooNew tells that the server does not know the version yet. When it stays so, its state
// is older than what was seen: it was restored from a backup.
func tooNew(err error) bool {
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
