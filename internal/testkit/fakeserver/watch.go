package fakeserver

import (
	"context"
	"io"
	"strconv"
	"time"
)

// watch is the body of the answer to a watch.
type watch struct {
	stream    *Stream
	selection selection
	// from is the version that was requested. Changes up to this version are not sent.
	from int
	// wake holds a token after anything changed that Read looks at.
	wake   chan struct{}
	closed <-chan struct{}
	close  context.CancelFunc
	timers []*time.Timer

	// The server's lock guards the rest.

	frames []frame
	// hasEnded is true if the watch ends after its frames. err is the error that ends it at once.
	hasEnded bool
	err      error
}

// frame is an event of a watch that arrives at a time.
type frame struct {
	due  time.Time
	text []byte
}

// bookmark sends the present version, unless the watch is at its end and so does not send the changes up to this
// version.
func (w *watch) bookmark() {
	if version := w.stream.hub.store.version; version > w.from && !w.hasEnded {
		w.add("BOOKMARK", encode(map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(version)}}))
	}
}

// send sends a change, if the watch is about it.
func (w *watch) send(c *change) {
	if w.hasEnded || c.version <= w.from {
		return
	}
	was, is := w.selection.matches(c.before), w.selection.matches(c.after)
	representation := w.stream.ID.Representation
	switch {
	case is && !was:
		w.add("ADDED", c.after.bytes(representation))
	case is:
		w.add("MODIFIED", c.after.bytes(representation))
	case was:
		w.add("DELETED", c.lastState().bytes(representation))
	}
}

func (w *watch) add(kind string, object []byte) {
	due := time.Now().Add(w.stream.delay)
	if n := len(w.frames); n > 0 && w.frames[n-1].due.After(due) {
		due = w.frames[n-1].due
	}
	text := make([]byte, 0, len(object)+40)
	text = append(append(append(text, `{"type":"`...), kind...), `","object":`...)
	w.frames = append(w.frames, frame{due, append(append(text, object...), "}\n"...)})
	w.signal()
}

func (w *watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Read waits for the next events.
func (w *watch) Read(p []byte) (int, error) {
	for {
		n, wait, err := w.readDue(p)
		if n > 0 || err != nil {
			return n, err
		}
		var due <-chan time.Time
		if wait > 0 {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			due = timer.C
		}
		select {
		case <-w.wake:
		case <-due:
		case <-w.closed:
			return 0, io.ErrClosedPipe
		}
	}
}

// readDue moves events that are due to p. If no event is due, it returns how long to wait for the next
// event, or 0.
func (w *watch) readDue(p []byte) (n int, wait time.Duration, err error) {
	w.stream.hub.mu.Lock()
	defer w.stream.hub.mu.Unlock()
	if w.err != nil {
		return 0, 0, w.err
	}
	if w.stream.isFrozen {
		return 0, 0, nil
	}
	for len(w.frames) > 0 && n < len(p) {
		next := &w.frames[0]
		if wait = time.Until(next.due); wait > 0 {
			return n, wait, nil
		}
		copied := copy(p[n:], next.text)
		n += copied
		if next.text = next.text[copied:]; len(next.text) == 0 {
			next.text = nil // or the array behind frames would keep it
			w.frames = w.frames[1:]
		}
	}
	if n == 0 && w.hasEnded {
		return 0, 0, io.EOF
	}
	return n, 0, nil
}

// Close ends the watch.
func (w *watch) Close() error {
	w.close()
	w.stream.hub.mu.Lock()
	defer w.stream.hub.mu.Unlock()
	delete(w.stream.watches, w)
	for _, timer := range w.timers {
		timer.Stop()
	}
	return nil
}
