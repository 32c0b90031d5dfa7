package page

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxReaders bounds the readers of one page.
	maxReaders = 16
	// connectionTime is how long a reader is served on one connection. The browser then connects again, and whoever guards
	// the page asks again whether the reader may read it.
	connectionTime = 2 * time.Minute
	// writeTimeout is how long a reader may take for one event.
	writeTimeout = 10 * time.Second
	// gatherTime is how long new reconciles are gathered before they are sent together.
	gatherTime = 250 * time.Millisecond
	// stateTime is how often the state is looked at.
	stateTime = 2 * time.Second
	// silentTime is the longest time without a line.
	silentTime = 15 * time.Second
)

// eventServer sends what is new to the readers of a page.
type eventServer struct {
	page *Page
	// instance names this process in the IDs of events.
	instance string
	// closed is closed at the end of the page, once.
	closed    chan struct{}
	closeOnce sync.Once
	// readers has a value for each reader, and room for maxReaders.
	readers chan struct{}
}

// close ends the events of all readers. It may be called again.
func (s *eventServer) close() { s.closeOnce.Do(func() { close(s.closed) }) }

// eventID returns the ID of the event after which the reconcile of a number is known.
func (s *eventServer) eventID(number uint64) string {
	return s.instance + "-" + strconv.FormatUint(number, 10)
}

// numberOf returns the number of the reconcile of an event ID. It reports whether the event is of this process.
func (s *eventServer) numberOf(id string) (number uint64, ok bool) {
	text, ok := strings.CutPrefix(id, s.instance+"-")
	number, err := strconv.ParseUint(text, 10, 64)
	return number, ok && err == nil
}

// ServeHTTP sends what is new as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html):
//
//	rows    new rows of the table of reconciles, with the ID after which they are known
//	missed  the number of reconciles that were dropped before they were sent
//	state   the state of the program
//	story   the story of the object, for a page of a story
//	reset   the process is another one than before: what the browser has is of the past
//
// The reader is served by the goroutine of the request, which ends with the page at the latest.
func (s *eventServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.readers <- struct{}{}:
	default:
		http.Error(w, "too many readers: close another page", http.StatusServiceUnavailable)
		return
	}
	defer func() { <-s.readers }()
	ctx, cancel := context.WithTimeout(r.Context(), connectionTime)
	defer cancel()

	e := &eventWriter{w: w, control: http.NewResponseController(w)}
	_ = e.control.SetReadDeadline(time.Time{}) // a connection without deadlines has none to lift
	e.write("retry: 1000\n\n")

	query := r.URL.Query()
	id := cmp.Or(r.Header.Get("Last-Event-ID"), query.Get("after"))
	known, isOfThisProcess := s.numberOf(id)
	if !isOfThisProcess && id != "" {
		known = 0
		e.send("reset", s.eventID(0), "")
	}
	if query.Get("story") != "" {
		s.sendStories(ctx, e, objectOf(query))
		return
	}
	s.sendReconciles(ctx, e, filterOf(query), known)
}

// sendReconciles sends the reconciles after known that a filter selects, and the state, until ctx ends or the reader is
// gone.
func (s *eventServer) sendReconciles(ctx context.Context, e *eventWriter, f filter, known uint64) {
	h := s.page.recorder.history
	view := reconcileView{h, "live-page/"}
	lastState := ""
	s.sendUntilEnd(ctx, e, func(isDue bool) {
		if newest := h.newestNumber(); newest > known {
			rows, isMore, missedCount := h.reconcilesBetween(known, newest+1, maxRows, f.matches)
			if missedCount > 0 {
				e.send("missed", "", strconv.FormatUint(missedCount, 10))
			} else if isMore {
				e.send("missed", "", "")
			}
			if known = newest; len(rows) > 0 {
				m := new(markup)
				for _, each := range rows {
					view.writeRow(m, each)
				}
				e.send("rows", s.eventID(known), m.String())
			}
		}
		if isDue {
			m := new(markup)
			s.page.writeState(ctx, m)
			e.sendChanged("state", &lastState, m)
		}
	})
}

// sendStories sends the story of an object when it has changed, until ctx ends or the reader is gone.
func (s *eventServer) sendStories(ctx context.Context, e *eventWriter, o objectName) {
	last := ""
	s.sendUntilEnd(ctx, e, func(bool) {
		m := new(markup)
		s.page.writeStory(ctx, m, o)
		e.sendChanged("story", &last, m)
	})
}

// sendUntilEnd calls send at once, after new reconciles, and each stateTime, until ctx ends, the page ends, or the
// reader is gone. isDue is true after each stateTime.
func (s *eventServer) sendUntilEnd(ctx context.Context, e *eventWriter, send func(isDue bool)) {
	look := time.NewTicker(stateTime) // a change of an object closes no channel
	defer look.Stop()
	isDue := false
	for e.err == nil && ctx.Err() == nil {
		added := s.page.recorder.history.nextAddition()
		send(isDue)
		if isDue {
			e.keepAlive()
		}
		isDue = false
		select {
		case <-ctx.Done():
		case <-s.closed:
			return
		case <-added:
			select {
			case <-time.After(gatherTime):
			case <-ctx.Done():
			}
		case <-look.C:
			isDue = true
		}
	}
}

// eventWriter writes events to one reader.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// err is the first error. Nothing is written after it.
	err     error
	wroteAt time.Time
}

// send sends an event. id is empty for an event without an ID.
func (e *eventWriter) send(name, id, data string) {
	if id != "" {
		name += "\nid: " + id
	}
	e.write("event: " + name + "\ndata: " + strings.ReplaceAll(data, "\n", "\ndata: ") + "\n\n")
}

// sendChanged sends an event with a text, unless the text is the same as last. It sets last.
func (e *eventWriter) sendChanged(name string, last *string, m *markup) {
	if now := m.String(); now != *last {
		*last = now
		e.send(name, "", now)
	}
}

// keepAlive sends a comment if the reader has received nothing for a while. So a reader that is gone is found.
func (e *eventWriter) keepAlive() {
	if time.Since(e.wroteAt) >= silentTime {
		e.write(": nothing is new\n\n")
	}
}

// write writes a text at once, or sets err.
func (e *eventWriter) write(text string) {
	if e.err != nil {
		return
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a connection without deadlines has none to move
	if _, e.err = e.w.Write([]byte(text)); e.err == nil {
		e.err = e.control.Flush()
	}
	e.wroteAt = time.Now()
}
