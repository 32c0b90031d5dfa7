package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/yare-go/yare/kube"
)

// ErrOver is the error of requests after the term of this process.
var ErrOver = errors.New("this process does not lead any more: the deadline of its lease has passed, or it has released the lease")

// errLittleLeft is the error of writes at the end of the term.
var errLittleLeft = fmt.Errorf("less than %s is left of the term, because the lease could not be renewed: a write needs more", LeastWriteTime)

// errTermEnds is the cause of the end of a write at the deadline.
var errTermEnds = errors.New("the deadline of the lease has passed")

// Fence keeps the requests of a process within its term. Before the term it passes everything: the
// caches of a standby are filled, and parts that run on every replica may write. During the term it
// passes reads, and bounds writes by what is left of the term. After the deadline it passes nothing,
// ever. All methods may be called concurrently.
type Fence struct {
	clock  Clock
	timing Timing
	// next is the transport. It is set by Handler, before the first request.
	next kube.Handler

	mu    sync.Mutex
	phase phase
	// sent is when the last successful renewal was sent.
	sent Reading
	// openWrites is the number of writes that are under way.
	openWrites int
	// settled is closed when openWrites becomes 0. It is nil before the end of the term.
	settled chan struct{}
	// hasDoubt is true after a write that may have been carried out although it failed. doubtAt is
	// when the last such write failed.
	hasDoubt bool
	doubtAt  Reading
}

// phase is the part of the life of a process, as its Fence sees it.
type phase int

const (
	// beforeTerm is the phase of a standby.
	beforeTerm phase = iota
	// inTerm is the phase of a leader.
	inTerm
	// released follows the orderly end of the term. Only the elector sends requests then, within the
	// deadline.
	released
	// lost follows the deadline.
	lost
)

// NewFence returns a Fence by the times of an election.
func NewFence(clock Clock, timing Timing) *Fence { return &Fence{clock: clock, timing: timing} }

// Handler returns next behind f. It is for [kube.AboveTransport], and is called once.
func (f *Fence) Handler(next kube.Handler) kube.Handler {
	f.next = next
	return kube.HandlerFunc(f.do)
}

// Transport returns the transport without the fence, for the requests of the elector. They are
// neither repeated nor limited, because the elector decides what to send and when.
func (f *Fence) Transport() kube.Handler {
	return kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
		return f.next.Do(ctx, r)
	})
}

// do passes r on, if the term allows it.
func (f *Fence) do(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	if !r.Verb.IsWrite() || r.Streams {
		if err := f.check(); err != nil {
			return nil, err
		}
		return f.next.Do(ctx, r)
	}
	left, err := f.beginWrite()
	if err != nil {
		return nil, err
	}
	if left == 0 {
		response, err := f.next.Do(ctx, r)
		f.endWrite(err)
		return response, err
	}
	return f.write(ctx, r, left)
}

// write sends a write that may take the time left, and waits for its answer until ctx ends. The write
// goes on then: its answer shows whether the write was carried out, and the lease can be released.
func (f *Fence) write(ctx context.Context, r *kube.Request, left time.Duration) (*kube.Response, error) {
	type answer struct {
		response *kube.Response
		err      error
	}
	answers := make(chan answer, 1)
	bounded := *r
	bounded.Query = withTimeout(r.Query, left)
	own, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), left, errTermEnds)
	go func() { // releaseTerm waits for it, or the deadline ends it
		defer cancel()
		response, err := f.next.Do(own, &bounded)
		f.endWrite(err)
		answers <- answer{response, err}
	}()
	select {
	case a := <-answers:
		return a.response, a.err
	case <-ctx.Done():
		err := ctx.Err()
		if cause := context.Cause(ctx); !errors.Is(cause, err) {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return nil, &kube.Error{Verb: r.Verb, Ref: r.Ref(), Subresource: r.Subresource, Unknown: true, Err: err}
	}
}

// withTimeout returns a copy of query with the parameter by which an API server ends a request after
// some time. It takes the text of a time.Duration (WithRequestDeadline in k8s.io/apiserver). A
// shorter timeout in query stays.
func withTimeout(query url.Values, left time.Duration) url.Values {
	bounded := maps.Clone(query)
	if bounded == nil {
		bounded = url.Values{}
	}
	if given, err := time.ParseDuration(query.Get("timeout")); err == nil && given > 0 && given < left {
		return bounded
	}
	bounded["timeout"] = []string{strconv.FormatInt(left.Milliseconds(), 10) + "ms"}
	return bounded
}

// check returns an error if no request may be sent.
func (f *Fence) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.leftLocked()
	return err
}

// leftLocked returns what is left of the term, or an error if no request may be sent. Before the term
// it returns zero.
func (f *Fence) leftLocked() (time.Duration, error) {
	switch f.phase {
	case beforeTerm:
		return 0, nil
	case inTerm:
		if left := f.timing.Deadline - f.clock().longestSince(f.sent); left > 0 {
			return left, nil
		}
		f.phase = lost
	}
	return 0, ErrOver
}

// beginWrite records that a write begins, and returns the time that it may take, or an error if it
// must not begin. Before the term the time is zero, which means that there is no bound.
func (f *Fence) beginWrite() (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left, err := f.leftLocked()
	switch {
	case err != nil:
		return 0, err
	case left > 0 && left < LeastWriteTime:
		return 0, errLittleLeft
	}
	f.openWrites++
	return left, nil
}

// endWrite records that a write has ended with err, which may be nil.
func (f *Fence) endWrite(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.openWrites--; f.openWrites == 0 && f.settled != nil {
		close(f.settled)
		f.settled = nil
	}
	if err != nil && isDoubtful(err) {
		f.hasDoubt, f.doubtAt = true, f.clock()
	}
}

// extendTerm records that a renewal was successful, which was sent at that reading. The first one
// begins the term. It returns false if the term is over, for which a renewal comes too late.
func (f *Fence) extendTerm(sent Reading) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase == beforeTerm {
		f.phase, f.sent = inTerm, sent
	}
	if _, err := f.leftLocked(); err != nil {
		return false
	}
	f.sent = sent
	_, err := f.leftLocked()
	return err == nil
}

// loseTerm ends the term because the lease is lost.
func (f *Fence) loseTerm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.phase = lost
}

// releaseTerm ends the term in an orderly way, and waits for writes that are under way until ctx ends.
// It returns false if a write may still be carried out, so that the lease must not be given to another
// process before it expires.
func (f *Fence) releaseTerm(ctx context.Context) bool {
	settled, ok := f.endTerm()
	if !ok {
		return false
	}
	select {
	case <-settled:
	case <-ctx.Done():
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// The server ends each write by the deadline that was in force when the write was sent.
	return !f.hasDoubt || f.clock().shortestSince(f.doubtAt) > f.timing.Duration
}

// endTerm ends the term in an orderly way. It returns a channel that is closed when no write is under
// way, or false if there is no term.
func (f *Fence) endTerm() (settled <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.leftLocked(); err != nil || f.phase != inTerm {
		return nil, false
	}
	f.phase = released
	none := make(chan struct{})
	if f.openWrites == 0 {
		close(none)
	} else {
		f.settled = none
	}
	return none, true
}

// isOpen reports whether bytes may leave the process.
func (f *Fence) isOpen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.phase {
	case inTerm:
		_, err := f.leftLocked()
		return err == nil
	case released:
		return f.clock().longestSince(f.sent) < f.timing.Deadline
	default:
		return f.phase == beforeTerm
	}
}
