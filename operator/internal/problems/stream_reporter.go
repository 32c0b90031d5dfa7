package problems

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

const (
	// quietFailures is how many times in a row a stream may get no whole answer before an error is logged.
	// Connections are cut now and then.
	quietFailures = 2
	// maxErrorTexts bounds how many different errors of one stream are counted separately.
	maxErrorTexts = 16
	// objectErrorsExpire is how long the objects of a stream that cannot be processed are counted after the last of them.
	// Then the count begins anew.
	objectErrorsExpire = 10 * time.Minute
)

// StreamReporter logs the errors of streams. It logs an error when the error is new, and then at its second, fourth,
// eighth and so on occurrence. It logs once that the stream works again. It logs every other occurrence with -v only.
type StreamReporter struct {
	log *slog.Logger
	// isReported reports whether the log has the reason of an error already.
	isReported func(error) bool

	mu       sync.Mutex
	failures map[wire.Stream]*streamFailure
	objects  map[wire.Stream]*objectErrors
}

// streamFailure is a stream that does not work.
type streamFailure struct {
	since time.Time
	times int
	// timesOf counts occurrences by the text of the error, without its digits.
	timesOf map[string]int
	// unanswered counts the occurrences without a whole answer.
	unanswered int
	// isLogged is true once an occurrence has been logged as an error.
	isLogged bool
}

// objectErrors counts the objects of a stream that could not be processed.
type objectErrors struct {
	times int
	last  time.Time
}

// NewStreamReporter returns a reporter that logs to log. isReported reports whether the log has the reason of an error
// already.
func NewStreamReporter(log *slog.Logger, isReported func(error) bool) *StreamReporter {
	return &StreamReporter{
		log: log, isReported: isReported,
		failures: make(map[wire.Stream]*streamFailure), objects: make(map[wire.Stream]*objectErrors),
	}
}

// RecordError records an error of s: see [cache.OnError].
func (r *StreamReporter) RecordError(s wire.Stream, err error) {
	_, isRequestError := kube.AsError(err)
	_, isRestoration := errors.AsType[*cache.RestorationError](err)
	switch {
	case isRequestError:
		r.recordFailure(s, err)
	case isRestoration: // at most a few in an hour, because the lists after them are spread
		r.log.Error("the server does not show what it has shown before", "stream", s.String(), "error", err)
	default:
		r.recordObjectError(s, err)
	}
}

// recordFailure records that s failed as a whole.
func (r *StreamReporter) recordFailure(s wire.Stream, err error) {
	if r.isReported(err) {
		r.log.Debug("the stream fails", "stream", s.String(), "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.failures[s]
	if f == nil {
		f = &streamFailure{since: time.Now(), timesOf: make(map[string]int)}
		r.failures[s] = f
	}
	attributes := []any{"stream", s.String(), "error", err}
	ordinal := f.add(err)
	if f.times > 1 {
		attributes = append(attributes, "times", f.times, "since", f.since.Format(time.RFC3339))
	}
	if isPowerOfTwo(ordinal) {
		f.isLogged = true
		r.log.Error("the stream fails; will try again", attributes...)
	} else {
		r.log.Debug("the stream fails", attributes...)
	}
}

// add counts an occurrence of err. It returns the ordinal number of the occurrence among those of its kind: 1
// for the first occurrence that matters. For example, a third error without an answer has the number 1,
// because quietFailures is 2.
func (f *streamFailure) add(err error) (ordinal int) {
	f.times++
	if kube.IsUnreachable(err) {
		f.unanswered++
		return f.unanswered - quietFailures
	}
	text := strings.Map(func(c rune) rune {
		if '0' <= c && c <= '9' {
			return -1 // removes ports, times and counts
		}
		return c
	}, err.Error())
	if f.timesOf[text] == 0 && len(f.timesOf) >= maxErrorTexts {
		text = "" // stands for all further errors
	}
	f.timesOf[text]++
	return f.timesOf[text]
}

// RecordRecovery records that s works again: see [cache.OnRecovered].
func (r *StreamReporter) RecordRecovery(s wire.Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.failures[s]
	delete(r.failures, s)
	if f != nil && f.isLogged {
		r.log.Info("the stream works again", "stream", s.String(), "failed for", time.Since(f.since).Round(time.Millisecond))
	}
}

// recordObjectError records that an object of s cannot be processed. What is wrong with one
// object is often wrong with thousands.
func (r *StreamReporter) recordObjectError(s wire.Stream, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	o := r.objects[s]
	if o == nil || now.Sub(o.last) > objectErrorsExpire {
		o = new(objectErrors)
		r.objects[s] = o
	}
	o.times++
	o.last = now
	attributes := []any{"stream", s.String(), "error", err}
	if o.times > 1 {
		attributes = append(attributes, "times", o.times)
	}
	if isPowerOfTwo(o.times) {
		r.log.Error("an object cannot be processed", attributes...)
	} else {
		r.log.Debug("an object cannot be processed", attributes...)
	}
}

// isPowerOfTwo reports whether n is 1, 2, 4, 8 and so on.
func isPowerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 }
