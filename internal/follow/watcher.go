package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

var (
	errIdle       = errors.New("the server has sent nothing for too long")
	errOverdue    = errors.New("the server did not end the watch when it was asked to")
	errEndedEarly = errors.New("the server ended the watch at once")
	errNoBody     = errors.New("the handler answered a watch without a BodyReader")
	errNoVersion  = errors.New("the list has no resourceVersion")
	errUnfinished = errors.New("the server ended the list before it was complete")
	// errBadFrame ends a watch with a frame that no server should send. The same version may lead to
	// the same frame again.
	errBadFrame = errors.New("the server sent what is no event")
)

const (
	// minWatchTimeout is the least time after which the server is asked to end a watch. The most
	// is twice as long. The next watch lets clients spread over the replicas of the server again.
	minWatchTimeout = 5 * time.Minute
	// minUnpingedTimeout is the same for a watch without pings. Only the end of the watch can show that the
	// connection works.
	minUnpingedTimeout = 2 * time.Minute
	// overdueTimeout is how long a watch may go on after the server was asked to end it.
	overdueTimeout = 30 * time.Second
	// bookmarkTimeout is how long a watch that has brought a bookmark may be silent. Servers
	// send a bookmark about every minute.
	bookmarkTimeout = 150 * time.Second
	// listIdleTimeout is how long a streaming list may bring no object that is new to it:
	// servers send the initial objects one after the other.
	listIdleTimeout = 15 * time.Second
	// listTimeout is how long a streaming list may keep the follower waiting altogether.
	listTimeout = 2 * time.Minute
	// minWatchDuration is the least time after which a clean end of a watch is progress.
	minWatchDuration = time.Second
)

// watcher reads watches, one after the other, into a sequence.
type watcher struct {
	handler  wire.Handler
	sequence *sequence
	relister *Relister
	prober   prober

	// isOpen is true while a watch is open: see ChangeWatchOpened.
	isOpen bool
	// hasBookmark is true if the current watch has brought a bookmark besides the end of a
	// list. The next watch need not bring one: a server sends none for some resources, and
	// none before it has seen an event itself.
	hasBookmark bool
	// hasErrorEvent is true if an ERROR event has ended the latest watch.
	hasErrorEvent bool
	// hasPings is true if the transport checks the connection of the latest watch by pings.
	hasPings bool
}

// watch makes one watch, and publishes that it has ended if it was open. The watch begins from the version of the
// sequence or, without a version, with a streaming list. The error is nil if the next watch may follow at once.
func (w *watcher) watch(ctx context.Context) error {
	w.hasBookmark, w.hasErrorEvent = false, false
	w.sequence.backoff.beginWatch()
	isRegularEnd, err := w.openAndRead(ctx)
	if errors.Is(err, errStopped) {
		return err
	}
	if !isRegularEnd {
		w.prober.recordInterruption()
	}
	if w.isOpen {
		w.isOpen = false
		if err := w.sequence.publish(Change{Type: ChangeWatchEnded}); err != nil {
			return err
		}
	}
	return err
}

// openAndRead opens a watch, and handles its frames until it ends. isRegularEnd reports whether the server ended the
// watch when it was asked to.
func (w *watcher) openAndRead(ctx context.Context) (isRegularEnd bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := w.timeout()
	asked := time.Now()
	response, err := w.handler.Do(ctx, w.request(timeout))
	if err != nil {
		return false, err
	}
	if response.BodyReader == nil {
		return false, watchError(w.sequence.stream, errNoBody)
	}
	opened := time.Now()
	w.hasPings = response.Pings
	// A read blocks until the stream is closed, which the end of ctx does.
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { response.BodyReader.Close(); close(closed) })
	defer func() {
		if stop() {
			response.BodyReader.Close()
		} else {
			<-closed
		}
	}()
	defer w.relister.beginWatch(cancel)()
	overdue := time.AfterFunc(timeout+overdueTimeout, func() { cancel(errOverdue) })
	defer overdue.Stop()
	if !w.sequence.isListing {
		if err := w.publishOpened(); err != nil {
			return false, err
		}
		w.prober.start(ctx, w.sequence.expectedState, func() { cancel(errRestored) })
		defer w.prober.stop()
	}

	err = w.readFrames(ctx, response.BodyReader, timeout, func() { cancel(errIdle) })
	switch isListing := w.sequence.isListing; {
	case err != nil && !isListing && (isIdle(err) || errors.Is(err, errProbe)):
		return false, nil // the connection is dead, the server has nothing to send, or the next watch is to be probed
	case err != nil:
		return false, err
	case isListing:
		return false, watchError(w.sequence.stream, errUnfinished)
	case time.Since(opened) < minWatchDuration:
		return false, watchError(w.sequence.stream, errEndedEarly)
	}
	w.sequence.backoff.recordProgress()
	return time.Since(asked) >= timeout-time.Second, nil
}

// timeout returns how long the next watch may last.
func (w *watcher) timeout() time.Duration {
	least := minWatchTimeout
	if !w.hasPings {
		least = minUnpingedTimeout
	}
	return (least + rand.N(least)).Truncate(time.Second)
}

func (w *watcher) request(timeout time.Duration) *wire.Request {
	parameters := []string{
		"allowWatchBookmarks", "true",
		"resourceVersion", w.sequence.version,
		"timeoutSeconds", strconv.Itoa(int(timeout / time.Second)),
	}
	if w.sequence.isListing {
		parameters = append(parameters, "sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan")
	}
	return w.sequence.stream.Request(wire.VerbWatch, parameters...)
}

// publishOpened publishes that the current watch is open.
func (w *watcher) publishOpened() error {
	w.isOpen = true
	w.relister.recordOpened()
	return w.sequence.publish(Change{Type: ChangeWatchOpened})
}

// readFrames handles the frames of a watch until it ends. It calls cancel, which must end ctx,
// if the server keeps it waiting for too long. The error is nil if the server ended the watch.
func (w *watcher) readFrames(ctx context.Context, stream io.Reader, timeout time.Duration, cancel func()) error {
	q := w.sequence
	idle := startIdleTimer(w.idleTimeout(timeout), cancel)
	defer idle.pause()
	if q.isListing {
		idle.limitTotal(listTimeout)
	}
	for frame, err := range wire.Frames(stream) {
		idle.pause() // the time that the consumer takes is not the server's silence
		switch cause := context.Cause(ctx); {
		case cause != nil:
			return watchError(q.stream, cause)
		case err != nil && isMalformed(err):
			return watchError(q.stream, fmt.Errorf("%w: %w", errBadFrame, err))
		case err != nil:
			return watchError(q.stream, err)
		}
		listedCount := q.tracker.listedCount
		if err := w.handleFrame(frame); err != nil {
			return err
		}
		if !q.isListing {
			idle.limitTotal(noLimit)
		}
		if !q.isListing || q.tracker.listedCount > listedCount {
			idle.limit(w.idleTimeout(timeout))
		}
		idle.resume()
	}
	if cause := context.Cause(ctx); cause != nil {
		return watchError(q.stream, cause)
	}
	return nil
}

// handleFrame publishes the changes of one event of the server.
func (w *watcher) handleFrame(frame wire.Frame) error {
	q := w.sequence
	switch frame.Type {
	case "ADDED", "MODIFIED":
		id, err := q.readIdentity(frame.Object)
		w.prober.recordEvent(id.resourceVersion)
		if err != nil {
			return q.putUndecodable(id, err)
		}
		return q.put(id, frame.Object)
	case "DELETED":
		id, err := q.readIdentity(frame.Object)
		w.prober.recordEvent(id.resourceVersion)
		if err != nil {
			return q.publishError(err)
		}
		return q.remove(id, frame.Object)
	case "BOOKMARK":
		return w.handleBookmark(frame.Object)
	case "ERROR":
		w.hasErrorEvent = true
		return q.stream.StatusError(frame.Object)
	default:
		return watchError(q.stream, fmt.Errorf("%w: its type is %q", errBadFrame, frame.Type))
	}
}

// handleBookmark handles a bookmark, which may be the end of a streaming list.
func (w *watcher) handleBookmark(object []byte) error {
	var bookmark struct {
		Metadata struct {
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	q := w.sequence
	if err := kube.Unmarshal(object, &bookmark); err != nil {
		return watchError(q.stream, fmt.Errorf("%w: read a bookmark: %w", errBadFrame, err))
	}
	version := bookmark.Metadata.ResourceVersion
	switch isEndOfList := bookmark.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"; {
	case !q.isListing:
		w.hasBookmark = true
		return q.bookmark(version)
	case !isEndOfList:
		return nil
	case version == "":
		return watchError(q.stream, errNoVersion)
	}
	if err := q.endList(version); err != nil {
		return err
	}
	return w.publishOpened()
}

// idleTimeout returns how long the server may send nothing that counts.
func (w *watcher) idleTimeout(timeout time.Duration) time.Duration {
	switch {
	case w.sequence.isListing:
		return listIdleTimeout
	case w.hasBookmark:
		return bookmarkTimeout
	case w.hasPings:
		return timeout + overdueTimeout
	default: // the first watch asked for more time, because its connection was unknown
		return min(timeout, 2*minUnpingedTimeout) + overdueTimeout
	}
}

// watchError returns the error of a watch that did not end as it should.
//
//go:noinline
func watchError(s wire.Stream, cause error) error {
	return &wire.Error{Verb: wire.VerbWatch, Ref: refOf(s, kube.Key{Namespace: s.Namespace}, ""), Err: cause}
}

// isIdle reports whether a watch ended with err because the server was silent.
func isIdle(err error) bool { return errors.Is(err, errIdle) || errors.Is(err, errOverdue) }

// isMalformed reports whether err is due to the bytes of a watch, and not to its connection.
func isMalformed(err error) bool {
	_, ok := errors.AsType[*jsontext.SyntacticError](err)
	return ok && !errors.Is(err, io.ErrUnexpectedEOF)
}
