package events

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// window is how long a series goes on without a repetition.
	window = 6 * time.Minute
	// firstInterval and longestInterval are those between two writes of a series.
	firstInterval   = 10 * time.Second
	longestInterval = 30 * time.Minute
)

// kind is what occurrences have in common but for the note.
type kind struct {
	regarding      reference // without its version
	severity       Type
	reason, action string
}

// series is an event, and how often it occurred.
type series struct {
	kind
	note            string
	resourceVersion string // of the object, at the first occurrence
	name            string
	first, last     time.Time
	// count is how often it occurred, and written how often as far as the cluster knows: 0
	// if there is no such Event.
	count, written int32
	// wrote is when it was written last, and interval how long to wait since then.
	wrote    time.Time
	interval time.Duration
	// failures are those of the server with this event, in a row.
	failures int
	// retry is when to try again after a failure.
	retry time.Time
	// refused is set when the server does not take it. It goes on being counted, so that
	// repetitions do not ask again.
	refused bool
}

// pending tells that there is something to be written.
func (s *series) pending() bool { return !s.refused && s.count > s.written }

// over is when the series is over, unless it occurs again.
func (s *series) over() time.Time { return s.last.Add(window) }

// due is when there is something to be done for s.
func (s *series) due() time.Time {
	switch {
	case !s.pending():
		return s.over()
	case !s.retry.IsZero():
		return s.retry
	case s.written == 0:
		return s.first
	default:
		if next := s.wrote.Add(s.interval); next.Before(s.over()) {
			return next
		}
		return s.over()
	}
}

// took notes that the cluster knows of so many occurrences.
func (s *series) took(count int32, now time.Time) {
	if s.written == 0 {
		s.interval = firstInterval
	} else {
		s.interval = min(2*s.interval, longestInterval)
	}
	s.written, s.wrote = count, now
	s.failures, s.retry = 0, time.Time{}
}

// series is what the Event says of it.
func (s *series) series() *eventSeries {
	if s.count < 2 {
		return nil
	}
	return &eventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(s.last)}
}
