package proxy

import (
	"encoding/json"
	"io"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

// watch is the body of the answer to a watch. A goroutine reads all that the server sends. Read returns the events
// that the gate lets pass.
type watch struct {
	exchange   *Exchange
	gate       Gate
	deliveries *deliveries
	body       io.ReadCloser
	// onClose is called after the watch has ended.
	onClose func(*watch)
	// requestDone is closed when the request has ended, and readerDone when the goroutine has ended.
	requestDone <-chan struct{}
	readerDone  chan struct{}
	// arrived has an element after an event has come.
	arrived chan struct{}
	// rest is the part of the last event that Read has not returned. Only Read uses rest and initialCount.
	rest []byte
	// initialCount counts the first objects of a streaming list.
	initialCount int

	mu sync.Mutex
	// queue holds the events that Read has not returned.
	queue []Event
	// isDelivering is true while the program receives an event.
	isDelivering bool
	// isHeld is true if the gate holds the first event of the queue.
	isHeld bool
}

// Event is an event of a watch, or the end of the server's answer.
type Event struct {
	// Type is the type of the event. Name and ResourceVersion are those of its object.
	Type, Name, ResourceVersion string
	// IsChange is true if an object was added, modified or deleted.
	IsChange bool
	// IsInitial is true for the first events of a streaming list, and the bookmark at their end.
	IsInitial bool
	// IsRepeated is true for the second delivery of an event.
	IsRepeated bool
	// EarlierChanges is the number of changes in this step that programs have received on watches of the same selection.
	EarlierChanges int

	// text is the JSON of the event, with the newline at its end.
	text []byte
	// end is why the server's answer has ended. It is nil for an event.
	end error
}

// Close ends the watch.
func (w *watch) Close() error {
	err := w.body.Close()
	<-w.readerDone
	w.onClose(w)
	return err
}

// readServer puts the events of the server into the queue. Close waits until readServer returns.
func (w *watch) readServer() {
	defer close(w.readerDone)
	isInitial := w.exchange.IsStreamingList()
	end := io.EOF
	for frame, err := range wire.Frames(w.body) {
		if err != nil {
			end = err
			break
		}
		metadata := metadataOf(frame)
		w.put(newEvent(frame, metadata, isInitial))
		isEnd := frame.Type == "BOOKMARK" && metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
		isInitial = isInitial && !isEnd
	}
	w.put(Event{end: end})
}

func newEvent(frame wire.Frame, metadata metav1.ObjectMeta, isInitial bool) Event {
	text := append([]byte(`{"type":"`+frame.Type+`","object":`), frame.Object...)
	return Event{
		text: append(text, '}', '\n'), Type: frame.Type, Name: metadata.Name, ResourceVersion: metadata.ResourceVersion,
		IsInitial: isInitial,
		IsChange:  frame.Type == "ADDED" || frame.Type == "MODIFIED" || frame.Type == "DELETED",
	}
}

// metadataOf returns the metadata of an event's object, which is empty for an error.
func metadataOf(frame wire.Frame) metav1.ObjectMeta {
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if json.Unmarshal(frame.Object, &object) != nil {
		return metav1.ObjectMeta{}
	}
	return object.Metadata
}

// put adds an event to the queue.
func (w *watch) put(e Event) {
	w.mu.Lock()
	w.queue = append(w.queue, e)
	w.mu.Unlock()
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// Read returns the next bytes that the program receives.
func (w *watch) Read(b []byte) (int, error) {
	if len(w.rest) == 0 {
		e, err := w.nextEvent()
		if err != nil {
			return 0, err
		}
		w.rest = e.text
	}
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// nextEvent waits for the next event that the program receives.
func (w *watch) nextEvent() (Event, error) {
	w.endDelivery()
	for {
		e, ok := w.first()
		if !ok {
			if !w.wait(w.arrived) {
				return e, ErrBroken
			}
			continue
		}
		e.EarlierChanges = w.deliveries.changeCount(w.exchange.Selection())
		d := w.gate.Decide(w.exchange, e)
		w.setHeld(d.Until != nil)
		if d.Until != nil && !w.wait(d.Until) {
			return e, ErrBroken
		}
		switch {
		case d.Break != nil:
			d.Break()
			return e, ErrBroken
		case d.Until != nil:
		case e.end != nil:
			return e, e.end
		default:
			w.deliver(e, d.DeliversTwice)
			return e, nil
		}
	}
}

// wait waits for a channel. It reports false if the request has ended.
func (w *watch) wait(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-w.requestDone:
		return false
	}
}

// first returns the first event of the queue, and reports whether there is one.
func (w *watch) first() (e Event, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return Event{}, false
	}
	return w.queue[0], true
}

// endDelivery records that the program has received the last event.
func (w *watch) endDelivery() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isDelivering = false
}

func (w *watch) setHeld(isHeld bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isHeld = isHeld
}

// deliver removes the first event from the queue, for the program to receive.
func (w *watch) deliver(e Event, isTwice bool) {
	w.mu.Lock()
	w.isDelivering = true
	if isTwice {
		w.queue[0].IsRepeated = true // it stays
	} else {
		w.queue = slices.Delete(w.queue, 0, 1)
	}
	w.mu.Unlock()
	if e.IsInitial && e.IsChange {
		w.initialCount++
	}
	w.deliveries.record(w.exchange, e, w.initialCount)
}

// state returns the number of changes that the gate holds, and reports whether the program has not received all
// events.
func (w *watch) state() (held int, isBehind bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	isBehind = w.isDelivering
	for _, e := range w.queue {
		isBehind = isBehind || e.end == nil
		if w.isHeld && e.IsChange {
			held++
		}
	}
	return held, isBehind
}
