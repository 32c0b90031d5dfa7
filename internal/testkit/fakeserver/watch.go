package fakeserver

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// change is one entry of the history. before is nil for an addition, and after is nil for a deletion.
type change struct {
	version       int
	before, after *object
	// last is the object's former state at the version of the change, for watches that report the object
	// as DELETED. It is nil before the first of them.
	last *object
}

func (c *change) gone() *object {
	if c.last == nil {
		c.last = newObject(c.before.id, c.version, clone(c.before.content))
	}
	return c.last
}

// record adds a change to the history, and sends it to the watches.
func (s *Server) record(c change) {
	s.history = append(s.history, c)
	for _, stream := range s.streams {
		for w := range stream.watches {
			w.send(&s.history[len(s.history)-1])
		}
	}
}

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
	// ended is true if the watch ends after its frames. err is the error that ends it at once.
	ended bool
	err   error
}

// frame is an event of a watch that arrives at a time.
type frame struct {
	due  time.Time
	text []byte
}

func (s *Server) watch(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	selected, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	stream := s.stream(streamOf(r))
	if err := stream.refuse(r); err != nil {
		return nil, err
	}
	from := 0
	if v := r.Query.Get("resourceVersion"); v != "" {
		if from, err = strconv.Atoi(v); err != nil || from < 0 {
			return nil, serverError(r, fmt.Sprintf("Invalid resource version %q", v))
		}
	}
	list := r.Query.Get("sendInitialEvents") == "true"
	if list && r.Query.Get("resourceVersionMatch") == "" {
		return nil, invalidOptions(r, "ListOptions", metav1.CauseTypeForbidden, "resourceVersionMatch")
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{stream: stream, selection: selected, from: from, wake: make(chan struct{}, 1), closed: ctx.Done(), close: cancel}
	if !list && from > 0 && (from < s.compacted || stream.expired) {
		stream.expired = false
		e := refusalOf(r, http.StatusGone, metav1.StatusReasonExpired, fmt.Sprintf("too old resource version: %d (%d)", from, s.compacted))
		if s.statusGone {
			cancel()
			return nil, e
		}
		w.add("ERROR", encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure",
			"metadata": map[string]any{}, "code": http.StatusGone, "reason": "Expired", "message": e.Answer.Message}))
		w.ended = true
		stream.watches[w] = true
		return &kube.Response{Code: http.StatusOK, Stream: w, Pings: true}, nil
	}
	if list || from == 0 {
		for _, o := range s.sorted() {
			if selected.matches(o) {
				w.add("ADDED", o.bytes(stream.ID.Representation))
			}
		}
		w.from = s.version
	}
	if list {
		w.add("BOOKMARK", mark(r, s.version, true))
	}
	stream.watches[w] = true
	for i := range s.history {
		w.send(&s.history[i])
	}
	if seconds, err := strconv.Atoi(r.Query.Get("timeoutSeconds")); err == nil {
		w.timers = append(w.timers, time.AfterFunc(time.Duration(seconds)*time.Second, func() {
			stream.change(func() { w.ended = true })
		}))
	}
	if period := s.bookmarks; period > 0 && r.Query.Get("allowWatchBookmarks") == "true" {
		var timer *time.Timer
		timer = time.AfterFunc(period, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if stream.watches[w] {
				w.bookmark()
				timer.Reset(period)
			}
		})
		w.timers = append(w.timers, timer)
	}
	return &kube.Response{Code: http.StatusOK, Stream: w, Pings: true}, nil
}

func mark(r *kube.Request, version int, end bool) []byte {
	metadata := map[string]any{"resourceVersion": strconv.Itoa(version)}
	if end {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	return encode(map[string]any{"apiVersion": r.Resource.GroupVersion().String(), "kind": r.Resource.Kind, "metadata": metadata})
}

// bookmark sends the present version.
func (w *watch) bookmark() {
	if version := w.stream.server.version; version > w.from {
		w.add("BOOKMARK", encode(map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(version)}}))
	}
}

// send sends a change, if the watch is about it.
func (w *watch) send(c *change) {
	if w.ended || c.version <= w.from {
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
		w.add("DELETED", c.gone().bytes(representation))
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
	w.stream.server.mu.Lock()
	defer w.stream.server.mu.Unlock()
	if w.err != nil {
		return 0, 0, w.err
	}
	if w.stream.frozen {
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
	if n == 0 && w.ended {
		return 0, 0, io.EOF
	}
	return n, 0, nil
}

// Close ends the watch.
func (w *watch) Close() error {
	w.close()
	w.stream.server.mu.Lock()
	defer w.stream.server.mu.Unlock()
	delete(w.stream.watches, w)
	for _, timer := range w.timers {
		timer.Stop()
	}
	return nil
}

// isToken matches the tokens of pages.
var isToken = regexp.MustCompile(`^\d+-\d+-\d+$`)

// pages is the rest of a list that was answered in part.
type pages struct {
	version int
	items   []*object
}

func (s *Server) list(r *kube.Request) (*kube.Response, error) {
	selected, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	if err := s.stream(streamOf(r)).refuse(r); err != nil {
		return nil, err
	}
	v, err := strconv.Atoi(cmp.Or(r.Query.Get("resourceVersion"), "0"))
	if err != nil || v < 0 {
		return nil, badRequest(r, fmt.Sprintf("Invalid resource version %q", r.Query.Get("resourceVersion")))
	}
	if v > s.version {
		e := refusalOf(r, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, fmt.Sprintf("Too large resource version: %d, current: %d", v, s.version))
		e.Answer.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
		e.Answer.Details.RetryAfterSeconds, e.RetryAfter = 1, time.Second
		return nil, e
	}
	page := pages{version: s.version}
	if token := r.Query.Get("continue"); token != "" {
		var ok bool
		if page, ok = s.pages[token]; !ok {
			if !isToken.MatchString(token) {
				return nil, badRequest(r, "continue key is not valid")
			}
			return nil, refusalOf(r, http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old")
		}
		delete(s.pages, token)
	} else {
		for _, o := range s.sorted() {
			if selected.matches(o) {
				page.items = append(page.items, o)
			}
		}
	}
	metadata := map[string]any{"resourceVersion": strconv.Itoa(page.version)}
	if limit, err := strconv.Atoi(r.Query.Get("limit")); err == nil && limit > 0 && limit < len(page.items) {
		token := fmt.Sprintf("%d-%d-%d", page.version, len(s.pages), len(page.items))
		s.pages[token] = pages{page.version, page.items[limit:]}
		metadata["continue"] = token
		metadata["remainingItemCount"] = len(page.items) - limit
		page.items = page.items[:limit]
	}
	apiVersion, kind := r.Resource.GroupVersion().String(), r.Resource.Kind+"List"
	if r.Representation == kube.MetadataOnly {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, `{"apiVersion":%q,"kind":%q,"metadata":%s,"items":[`, apiVersion, kind, encode(metadata))
	for i, o := range page.items {
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(o.bytes(r.Representation))
	}
	body.WriteString("]}")
	return &kube.Response{Code: http.StatusOK, Body: body.Bytes()}, nil
}
