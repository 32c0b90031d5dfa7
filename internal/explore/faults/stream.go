package faults

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/kube"
)

// Stream is an open watch.
type Stream struct {
	Session, Resource, Namespace string
	// IsSelective is true if the watch has a label or a field selector.
	IsSelective bool
	// LastVersion is the resource version that the program received last. It is empty before the
	// first event.
	LastVersion string
	// Held counts the events that a fault holds.
	Held int
}

// Streams returns the open watches, in no order.
func (p *Proxy) Streams() []Stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Stream
	for s := range p.streams {
		e := s.exchange
		all = append(all, Stream{
			Session: e.session.name, Resource: e.parsed.Resource, Namespace: e.parsed.Namespace,
			IsSelective: e.selection.labels != "" || e.selection.fields != "",
			LastVersion: s.lastVersion, Held: s.heldLocked(),
		})
	}
	return all
}

// stream is the body of the answer to a watch. A goroutine reads all that the server sends, and
// Read returns the frames that no fault holds.
type stream struct {
	proxy    *Proxy
	exchange *exchange
	body     io.ReadCloser
	// requestDone is closed when the request has ended, and readerDone when the goroutine has ended.
	requestDone <-chan struct{}
	readerDone  chan struct{}
	// wake has an element if the next frame must be looked at again.
	wake chan struct{}
	// rest is the part of the last frame that Read has not returned. Only Read uses it.
	rest []byte

	// The following fields are guarded by proxy.mu. queue holds the frames that Read has not
	// returned.
	queue []frame
	// err is why the server's answer has ended, or nil.
	err error
	// isDelivering is true while the program receives a frame.
	isDelivering bool
	// isHeld is true if a fault holds the first frame of the queue.
	isHeld bool
	// missed is the fault that makes the program miss the frames of the queue, or nil.
	missed      *Armed
	lastVersion string
	// initialCount counts the first objects of a streaming list.
	initialCount int
}

// frame is an event of a watch.
type frame struct {
	// text is the JSON of the event, with the newline at its end.
	text    []byte
	version string
	// eventType is the type of the event, and name is the name of its object.
	eventType, name string
	// isChange is true if an object was added, modified or deleted.
	isChange bool
	// isInitial is true for the first events of a streaming list, and the bookmark at their end.
	isInitial bool
	// isRepeated is true for an event that a fault delivers twice, and for its repetition.
	isRepeated bool
}

// newStream returns the body of a watch with its faults.
func (p *Proxy) newStream(e *exchange, body io.ReadCloser, requestDone <-chan struct{}) *stream {
	s := &stream{
		proxy: p, exchange: e, body: body, requestDone: requestDone,
		readerDone: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	p.mu.Lock()
	p.streams[s] = struct{}{}
	p.mu.Unlock()
	go s.readServer()
	return s
}

// Close ends the watch.
func (s *stream) Close() error {
	err := s.body.Close()
	<-s.readerDone
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	delete(s.proxy.streams, s)
	return err
}

// readServer puts the frames of the server into the queue. Close waits until readServer returns.
func (s *stream) readServer() {
	defer close(s.readerDone)
	isInitial := s.exchange.isStreamingList
	end := io.EOF
	for event, err := range kube.Frames(s.body) {
		if err != nil {
			end = err
			break
		}
		f := newFrame(event, isInitial)
		isInitial = isInitial && !isEndOfInitial(event)
		s.proxy.mu.Lock()
		s.queue = append(s.queue, f)
		s.signalLocked()
		s.proxy.mu.Unlock()
	}
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	s.err = end
	s.signalLocked()
}

func newFrame(event kube.Frame, isInitial bool) frame {
	text := append([]byte(`{"type":"`+event.Type+`","object":`), event.Object...)
	metadata := metadataOf(event)
	return frame{
		text: append(text, '}', '\n'), version: metadata.ResourceVersion, isInitial: isInitial,
		eventType: event.Type, name: metadata.Name,
		isChange: event.Type == "ADDED" || event.Type == "MODIFIED" || event.Type == "DELETED",
	}
}

func isEndOfInitial(event kube.Frame) bool {
	return event.Type == "BOOKMARK" && metadataOf(event).Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// metadataOf returns the metadata of an event's object, which is empty for an error.
func metadataOf(event kube.Frame) metav1.ObjectMeta {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if json.Unmarshal(event.Object, &object) != nil {
		return metav1.ObjectMeta{}
	}
	return object.Metadata
}

// Read returns the next bytes that the program receives.
func (s *stream) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		var err error
		if s.rest, err = s.nextText(); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// nextText waits for the next frame that the program receives, and returns its text.
func (s *stream) nextText() ([]byte, error) {
	p := s.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	s.isDelivering = false // the program has received the frame before
	for {
		switch s.nextStepLocked() {
		case deliver:
			return s.popLocked().text, nil
		case breakOff:
			return nil, errCut
		case end:
			return nil, s.err
		}
		p.mu.Unlock()
		hasEnded := false
		select {
		case <-s.wake:
		case <-s.requestDone:
			hasEnded = true
		}
		p.mu.Lock()
		if hasEnded {
			return nil, errCut
		}
	}
}

// popLocked takes the first frame of the queue, for the program to receive.
func (s *stream) popLocked() frame {
	p, f := s.proxy, s.queue[0]
	s.queue = s.queue[1:]
	s.isDelivering = true
	if f.version != "" {
		s.lastVersion = f.version
	}
	p.recordDeliveryLocked(s, f)
	if f.isChange && !f.isInitial {
		p.delivered[s.exchange.selection]++
	}
	if f.isChange && !s.exchange.isBackground() {
		p.lastEvent = time.Now()
	}
	return f
}

// streamStep is the next step of a stream.
type streamStep int

const (
	wait streamStep = iota
	deliver
	breakOff
	end
)

// nextStepLocked returns the next step of the stream. It triggers the faults of the first frame.
func (s *stream) nextStepLocked() streamStep {
	p := s.proxy
	s.isHeld = false
	if s.missed != nil && !p.isActiveLocked(s.missed) {
		p.expiring[s.exchange.selection] = s.missed
		return breakOff
	}
	if s.exchange.session.isolation.keepsBack(s.exchange) {
		s.isHeld = true
		return wait
	}
	if len(s.queue) == 0 {
		if s.err != nil {
			return end
		}
		return wait
	}
	if past := s.exchange.past; past != nil && p.isActiveLocked(past) {
		s.isHeld = true
		return wait
	}
	f := s.queue[0]
	if f.isInitial {
		return deliver
	}
	for _, a := range p.armed {
		if a.fault.Stream != s.exchange.parsed.Resource || !p.isActiveLocked(a) || p.delivered[s.exchange.selection] < a.fault.Events {
			continue
		}
		switch a.fault.Kind {
		case schedule.WatchLag, schedule.WatchMissed:
			if !f.isChange { // a bookmark before the first change says nothing that the fault holds
				continue
			}
			s.isHeld = true
			a.triggerLocked()
			if a.fault.Kind == schedule.WatchMissed {
				s.missed = a
			}
			return wait
		case schedule.WatchTwice:
			if f.isChange && !f.isRepeated {
				a.triggerLocked()
				f.isRepeated = true
				s.queue[0] = f
				s.queue = slices.Insert(s.queue, 1, f)
			}
		case schedule.WatchCut, schedule.WatchExpired:
			if !f.isChange || a.isSpent {
				continue
			}
			a.isSpent = true
			if a.fault.Kind == schedule.WatchExpired {
				p.expiring[s.exchange.selection] = a
			} else {
				a.triggerLocked()
			}
			return breakOff
		}
	}
	return deliver
}

// heldLocked returns the number of changes that a fault holds.
func (s *stream) heldLocked() int {
	if !s.isHeld {
		return 0
	}
	n := 0
	for _, f := range s.queue {
		if f.isChange {
			n++
		}
	}
	return n
}

// signalLocked lets Read look at the next frame again.
func (s *stream) signalLocked() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// wakeStreamsLocked lets all streams look at their next frames again.
func (p *Proxy) wakeStreamsLocked() {
	for s := range p.streams {
		s.signalLocked()
	}
}

// expireLocked decides whether a watch is answered with 410. A list or a streaming list cancels that answer,
// because its program sees the present.
func (p *Proxy) expireLocked(e *exchange, query url.Values) {
	a := p.expiring[e.selection]
	if a == nil || e.parsed.Verb != kube.VerbWatch && e.parsed.Verb != kube.VerbList {
		return
	}
	delete(p.expiring, e.selection)
	version := query.Get("resourceVersion")
	if e.parsed.Verb == kube.VerbWatch && !e.isStreamingList && version != "" && version != "0" {
		e.expires = true
		a.triggerLocked()
	}
}

// writeExpired answers a watch with the event of a server that has forgotten the version.
func writeExpired(w http.ResponseWriter) {
	w.Header().Set("Content-Type", kube.ContentJSON)
	event := map[string]any{"type": "ERROR", "object": newStatus(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")}
	_ = json.NewEncoder(w).Encode(event) // the client may be gone
}
