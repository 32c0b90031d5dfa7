package events

import "time"

const (
	// seriesTimeout is how long a series goes on without a repetition.
	seriesTimeout = 6 * time.Minute
	// firstInterval and longestInterval limit the time between two writes of a series.
	firstInterval   = 10 * time.Second
	longestInterval = 30 * time.Minute
)

// seriesKey is what the occurrences of a series have in common, apart from the note.
type seriesKey struct {
	// regarding is the object, without its resource version.
	regarding      reference
	severity       severity
	reason, action string
}

// series is one Event, and counts its occurrences: calls of [Recorder.Normal] or [Recorder.Warning] with the same
// object, reason, action and note. The first occurrence creates the Event. Writes of later occurrences change the count
// in the Event, at growing intervals.
//
// For example, an event occurs once a second from 0 s on:
//
//	 0 s  the Event is created, for one occurrence
//	10 s  it is patched to the count 11 (firstInterval after the last write)
//	30 s  it is patched to the count 31. The interval has doubled
//	70 s  it is patched to the count 71
//
// If the event does not occur for six minutes (seriesTimeout), the series is over. The next occurrence begins another
// Event.
type series struct {
	seriesKey
	note string
	// resourceVersion is the resource version of the object at the first occurrence.
	resourceVersion string
	// name is the name of the Event.
	name string
	// first and last are the times of the first and the last occurrence.
	first, last time.Time
	// count is the number of occurrences. written is the part of it that the cluster knows,
	// and 0 if the cluster has no such Event.
	count, written int32
	// lastWrite is the time of the last successful write, and interval the time from then to
	// the next one.
	lastWrite time.Time
	interval  time.Duration
	// failureCount counts the failures of the server with this event, in a row.
	failureCount int
	// retryAt is when to try again after a failure, or zero.
	retryAt time.Time
	// isRefused is true if the server does not accept the event. The series still counts, so
	// that repetitions cause no more requests.
	isRefused bool
}

// isPending reports whether the cluster does not know all occurrences.
func (s *series) isPending() bool { return !s.isRefused && s.count > s.written }

// end returns when the series is over, unless it occurs again.
func (s *series) end() time.Time { return s.last.Add(seriesTimeout) }

// due returns when to write s or, if nothing is pending, when the series is over.
func (s *series) due() time.Time {
	switch {
	case !s.isPending():
		return s.end()
	case !s.retryAt.IsZero():
		return s.retryAt
	case s.written == 0:
		return s.first
	default:
		if next := s.lastWrite.Add(s.interval); next.Before(s.end()) {
			return next
		}
		return s.end()
	}
}

// recordWrite records that the cluster knows count occurrences.
func (s *series) recordWrite(count int32, now time.Time) {
	if s.written == 0 {
		s.interval = firstInterval
	} else {
		s.interval = min(2*s.interval, longestInterval)
	}
	s.written, s.lastWrite = count, now
	s.failureCount, s.retryAt = 0, time.Time{}
}

// recordFailure records that the server failed with the event. The next attempt comes later each time.
func (s *series) recordFailure(now time.Time) {
	s.failureCount++
	s.retryAt = now.Add(firstPause << s.failureCount)
}

// recordGone records that the cluster has no such Event any more.
func (s *series) recordGone() {
	s.written, s.retryAt = 0, time.Time{}
	s.name = newEventName(s.regarding)
}
