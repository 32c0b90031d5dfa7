package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/yare-go/yare/kube"
)

var (
	errIdle       = errors.New("the server has sent nothing for too long")
	errOverdue    = errors.New("the server did not end the watch when it was asked to")
	errEndedEarly = errors.New("the server ended the watch at once")
	errNoStream   = errors.New("the handler answered a watch without a stream")
	errUnfinished = errors.New("the server ended the list before it was complete")
)

const (
	// minWatchTimeout is the least time after which the server is asked to end a watch. The most
	// is twice as long. The next watch lets clients spread over the replicas of the server again.
	minWatchTimeout = 5 * time.Minute
	// minUnpingedTimeout is the same for a watch without pings, of which only the end can show
	// that its connection is alive.
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

// watch reads one watch to its end, and publishes that it ended if it was open.
func (f *follower) watch(ctx context.Context) error {
	f.progressed, f.bookmarked = false, false
	due, err := f.readWatch(ctx)
	if errors.Is(err, errStopped) {
		return err
	}
	if !due {
		f.interrupted = true
	}
	if f.open {
		f.open = false
		if err := f.publish(Change{Type: ChangeWatchEnded}); err != nil {
			return err
		}
	}
	return err
}

// readWatch reads one watch to its end: from version on or, without a version, from a streaming
// list on. due reports whether the server ended the watch when it was asked to. The error is
// nil if the next watch may follow at once.
func (f *follower) readWatch(ctx context.Context) (due bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := f.watchTimeout()
	asked := time.Now()
	response, err := f.handler.Do(ctx, f.watchRequest(timeout))
	if err != nil {
		return false, err
	}
	if response.Stream == nil {
		return false, f.watchError(errNoStream)
	}
	opened := time.Now()
	f.pings = response.Pings
	// A read blocks until the stream is closed, which the end of ctx does.
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { response.Stream.Close(); close(closed) })
	defer func() {
		if stop() {
			response.Stream.Close()
		} else {
			<-closed
		}
	}()
	defer f.relister.beginWatch(func() { cancel(errRelist) })()
	overdue := time.AfterFunc(timeout+overdueTimeout, func() { cancel(errOverdue) })
	defer overdue.Stop()
	if !f.listing {
		if err := f.publishOpened(); err != nil {
			return false, err
		}
		if f.interrupted {
			f.startProbe(ctx, func() { cancel(errRestored) })
			defer f.stopProbe()
		}
	}

	err = f.readFrames(ctx, response.Stream, timeout, func() { cancel(errIdle) })
	switch {
	case err != nil && !f.listing && isIdle(err):
		return false, nil // the connection is dead, or the server has nothing to send
	case err != nil:
		return false, err
	case f.listing:
		return false, f.watchError(errUnfinished)
	case time.Since(opened) < minWatchDuration:
		return false, f.watchError(errEndedEarly)
	}
	f.backoff.recordProgress()
	return time.Since(asked) >= timeout-time.Second, nil
}

// watchTimeout returns how long the next watch may last.
func (f *follower) watchTimeout() time.Duration {
	least := minWatchTimeout
	if !f.pings {
		least = minUnpingedTimeout
	}
	return (least + rand.N(least)).Truncate(time.Second)
}

func (f *follower) watchRequest(timeout time.Duration) *kube.Request {
	parameters := []string{
		"allowWatchBookmarks", "true",
		"resourceVersion", f.version,
		"timeoutSeconds", strconv.Itoa(int(timeout / time.Second)),
	}
	if f.listing {
		parameters = append(parameters, "sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan")
	}
	return f.stream.Request(kube.VerbWatch, parameters...)
}

// publishOpened publishes that the current watch is open.
func (f *follower) publishOpened() error {
	f.open = true
	return f.publish(Change{Type: ChangeWatchOpened})
}

// watchError returns the error of a watch that did not end as it should.
func (f *follower) watchError(cause error) error {
	return &kube.Error{
		Verb: kube.VerbWatch, Ref: refOf(f.stream, kube.Key{Namespace: f.stream.Namespace}, ""), Err: cause,
	}
}

// readFrames handles the frames of a watch until it ends. It calls cancel, which must end ctx,
// if the server keeps it waiting for too long. The error is nil if the server ended the watch.
func (f *follower) readFrames(ctx context.Context, stream io.Reader, timeout time.Duration, cancel func()) error {
	idle := startIdleTimer(f.idleTimeout(timeout), cancel)
	defer idle.pause()
	if f.listing {
		idle.limitTotal(listTimeout)
	}
	for frame, err := range kube.Frames(stream) {
		idle.pause() // the time that the consumer takes is not the server's silence
		switch cause := context.Cause(ctx); {
		case cause != nil:
			return f.watchError(cause)
		case err != nil && isMalformed(err):
			return f.watchError(fmt.Errorf("%w: %w", errBadFrame, err))
		case err != nil:
			return f.watchError(err)
		}
		listed := f.tracker.listed
		if err := f.handleFrame(frame); err != nil {
			return err
		}
		if !f.listing {
			idle.unlimitTotal()
		}
		if !f.listing || f.tracker.listed > listed {
			idle.limit(f.idleTimeout(timeout))
		}
		idle.resume()
	}
	if cause := context.Cause(ctx); cause != nil {
		return f.watchError(cause)
	}
	return nil
}

// idleTimeout returns how long the server may send nothing that counts.
func (f *follower) idleTimeout(timeout time.Duration) time.Duration {
	switch {
	case f.listing:
		return listIdleTimeout
	case f.bookmarked:
		return bookmarkTimeout
	case f.pings:
		return timeout + overdueTimeout
	default: // the first watch asked for more time, because its connection was unknown
		return min(timeout, 2*minUnpingedTimeout) + overdueTimeout
	}
}

// isIdle reports whether a watch ended with err because the server was silent.
func isIdle(err error) bool { return errors.Is(err, errIdle) || errors.Is(err, errOverdue) }
