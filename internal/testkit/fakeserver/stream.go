package fakeserver

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

var errReset = errors.New("read: connection reset by peer")

// StreamID names the lists and watches of one selection in one representation.
type StreamID struct {
	Plural         string
	Namespace      string
	LabelSelector  string
	FieldSelector  string
	Representation wire.Representation
}

func streamOf(r *wire.Request) StreamID {
	return StreamID{
		r.Resource.Plural, r.Namespace, r.Query.Get("labelSelector"), r.Query.Get("fieldSelector"), r.Representation,
	}
}

func (id StreamID) compare(other StreamID) int {
	return cmp.Or(cmp.Compare(id.Plural, other.Plural), cmp.Compare(id.Namespace, other.Namespace),
		cmp.Compare(id.LabelSelector, other.LabelSelector),
		cmp.Compare(id.FieldSelector, other.FieldSelector), cmp.Compare(id.Representation, other.Representation))
}

// Stream controls the lists and watches of one selection, for a test.
type Stream struct {
	hub *hub
	ID  StreamID

	// The server's lock guards the rest.

	delay    time.Duration
	isFrozen bool
	// refusal is the code and the reason that requests are refused with, or 0.
	refusal int
	reason  metav1.StatusReason
	// answersLists is true if lists are answered although watches are refused.
	answersLists bool
	// isExpired is true if the next watch from a version ends with 410.
	isExpired bool
	// held is closed when requests are answered again. It is nil while they are answered.
	held    chan struct{}
	watches map[*watch]bool
}

// change calls f under the server's lock and wakes every open watch.
func (s *Stream) change(f func()) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	f()
	for w := range s.watches {
		w.signal()
	}
}

// Delay makes later events arrive d after they happened. Events keep their order.
func (s *Stream) Delay(d time.Duration) { s.change(func() { s.delay = d }) }

// Freeze makes watches silent. They stay open, and new ones are accepted.
func (s *Stream) Freeze() { s.change(func() { s.isFrozen = true }) }

// Thaw ends Freeze. The events in between arrive now.
func (s *Stream) Thaw() { s.change(func() { s.isFrozen = false }) }

// Cut breaks the connection of open watches. Events that did not arrive yet are lost for them.
func (s *Stream) Cut() { s.change(func() { s.cutLocked(errReset) }) }

// End ends open watches in good order, after the events that happened so far.
func (s *Stream) End() {
	s.change(func() {
		for w := range s.watches {
			w.hasEnded = true
		}
	})
}

// cutLocked breaks the connection of open watches with err. The caller holds the server's lock.
func (s *Stream) cutLocked(err error) {
	for w := range s.watches {
		w.err = err
		w.signal()
	}
}

// Refuse makes the server refuse lists and watches. Open watches are not affected.
func (s *Stream) Refuse(code int, reason metav1.StatusReason) {
	s.change(func() { s.refusal, s.reason, s.answersLists = code, reason, false })
}

// RefuseWatches makes the server refuse watches, and not lists. Open watches are not affected.
func (s *Stream) RefuseWatches(code int, reason metav1.StatusReason) {
	s.change(func() { s.refusal, s.reason, s.answersLists = code, reason, true })
}

// Allow ends Refuse and RefuseWatches.
func (s *Stream) Allow() { s.change(func() { s.refusal = 0 }) }

// Hold leaves requests for lists and watches without an answer. Open watches are not affected.
func (s *Stream) Hold() {
	s.change(func() {
		if s.held == nil {
			s.held = make(chan struct{})
		}
	})
}

// Release ends Hold.
func (s *Stream) Release() {
	s.change(func() {
		if s.held != nil {
			close(s.held)
			s.held = nil
		}
	})
}

// Expire makes the next watch from a version end with 410, and cuts open watches.
func (s *Stream) Expire() {
	s.change(func() { s.isExpired = true; s.cutLocked(errReset) })
}

// Bookmark sends open watches a bookmark with the present version, unless it is at or below
// the version that they were requested from.
func (s *Stream) Bookmark() {
	s.change(func() {
		for w := range s.watches {
			w.bookmark()
		}
	})
}

// Watches returns how many watches are open.
func (s *Stream) Watches() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.watches)
}

// refusalLocked returns the error that a list or a watch is refused with, or nil. The caller holds the server's lock.
func (s *Stream) refusalLocked(r *wire.Request) error {
	if s.refusal == 0 || s.answersLists && r.Verb == wire.VerbList {
		return nil
	}
	reason := s.reason
	if reason == "" {
		switch s.refusal {
		case http.StatusForbidden:
			reason = metav1.StatusReasonForbidden
		case http.StatusTooManyRequests:
			reason = metav1.StatusReasonTooManyRequests
		case http.StatusServiceUnavailable:
			reason = metav1.StatusReasonServiceUnavailable
		case http.StatusInternalServerError:
			reason = metav1.StatusReasonInternalError
		}
	}
	return Refusal(r, s.refusal, reason)
}
