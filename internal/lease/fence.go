package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// writeTimeoutError is the error of a write without an answer within the time that the term allowed the write.
type writeTimeoutError time.Duration

func (e writeTimeoutError) Error() string {
	return fmt.Sprintf(
		"the write had no answer within the %s that the lease of the leader allowed it: a webhook that does not answer "+
			"or a busy server may be the cause; a longer --lease-duration allows more", time.Duration(e).Round(time.Millisecond))
}

// Fence keeps the requests of a process within its term:
//
//   - Before the term it passes all requests: the caches of a standby are filled, and parts that run on every
//     replica may write.
//   - During the term it passes reads. It passes a write with a time limit: the time that is left of the term. It
//     refuses a write if less than [LeastWriteTime] is left.
//   - After the deadline it refuses all requests.
//
// The fence stands in two places: [Fence.Handler] checks each attempt to send a request, and [Fence.Dialer]
// checks when bytes leave the process. For example, a process sends a write at 19 s, and its deadline is 20 s.
// The machine suspends the process after the check of the handler, and wakes it at 60 s. The connection then
// refuses the bytes. All methods may be called concurrently.
type Fence struct {
	term *term
	// next is the transport. Handler sets it, before the first request.
	next wire.Handler
	// timedOutWrites counts the writes that had no answer within their time limit.
	timedOutWrites atomic.Int64
}

// NewFence returns a Fence by the times of an election.
func NewFence(clock Clock, timing Timing) *Fence { return &Fence{term: newTerm(clock, timing)} }

// TimedOutWrites returns the number of writes that the fence has ended, because they had no answer within the time
// that was left of the term when they began.
func (f *Fence) TimedOutWrites() int64 { return f.timedOutWrites.Load() }

// Handler returns a handler that checks each request by f, and then passes the request on to next. It is for
// WrapAttempts of [kube.Config]. Handler must be called once, before the first request of its result and of
// [Fence.Transport].
func (f *Fence) Handler(next wire.Handler) wire.Handler {
	f.next = next
	return wire.HandlerFunc(f.sendIfAllowed)
}

// Transport returns the transport without the fence, for the requests of the elector. They are
// neither repeated nor limited, because the elector decides what to send and when. The transport is the handler that
// [Fence.Handler] was called with, so Handler must be called before the first request.
func (f *Fence) Transport() wire.Handler {
	return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		return f.next.Do(ctx, r)
	})
}

// sendIfAllowed passes r on to the transport if the term allows r. Otherwise it returns an error.
func (f *Fence) sendIfAllowed(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if !r.Verb.IsWrite() || r.WantsBodyReader {
		if err := f.term.check(); err != nil {
			return nil, err
		}
		return f.next.Do(ctx, r)
	}
	left, isLimited, err := f.term.beginWrite()
	if err != nil {
		return nil, err
	}
	if !isLimited {
		response, err := f.next.Do(ctx, r)
		f.term.endWrite(err)
		return response, err
	}
	return f.sendWrite(ctx, r, left)
}

// timeoutTolerance is how long before its limit a write may end, by the clock of this process, and count as timed out.
// The API server has a clock of its own, and gets the limit in whole milliseconds.
const timeoutTolerance = 10 * time.Millisecond

// sendWrite sends a write that may take the time left, and waits for its answer until ctx ends. The write goes on
// after the end of ctx, because its answer shows whether the server has carried out the write. If nobody knows that,
// the lease cannot be released.
func (f *Fence) sendWrite(ctx context.Context, r *wire.Request, left time.Duration) (*wire.Response, error) {
	type answer struct {
		response *wire.Response
		err      error
	}
	answers := make(chan answer, 1)
	limited := *r
	limited.Query = withTimeout(r.Query, left)
	began := f.term.clock()
	writeCtx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), left, writeTimeoutError(left))
	go func() { // term.release waits for it, or the deadline ends it
		defer cancel()
		response, err := f.next.Do(writeCtx, &limited)
		if err != nil && f.term.clock().longestSince(began) >= left-timeoutTolerance {
			f.timedOutWrites.Add(1)
			if _, isNamed := errors.AsType[writeTimeoutError](err); !isNamed {
				err = fmt.Errorf("%w: %w", err, writeTimeoutError(left))
			}
		}
		f.term.endWrite(err)
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
		return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Subresource: r.Subresource, Unknown: true, Err: err}
	}
}

// withTimeout returns a copy of query with the parameter timeout. An API server ends a request after this time
// (WithRequestDeadline in k8s.io/apiserver). The parameter is the text of a time.Duration, such as 2000ms. A
// shorter timeout in query stays.
func withTimeout(query url.Values, left time.Duration) url.Values {
	limited := maps.Clone(query)
	if limited == nil {
		limited = url.Values{}
	}
	if timeout, err := time.ParseDuration(query.Get("timeout")); err == nil && timeout > 0 && timeout < left {
		return limited
	}
	limited["timeout"] = []string{strconv.FormatInt(left.Milliseconds(), 10) + "ms"}
	return limited
}

// Dialer opens connections, as the field Dial of kube.Config.
type Dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer returns dial with connections that send nothing after the deadline. dial may be nil.
//
// The kernel must not deliver data after the end of the process. Therefore the end of a connection discards
// the data that was not delivered. On Linux, the kernel also gives up a connection on which it could deliver
// nothing for some time: the time between the deadline of the term and the take-over by another replica, 10 s
// by default. Therefore a write of a stopped process is not delivered after the take-over either. Besides, a
// dead connection is replaced before the lease is lost.
func (f *Fence) Dialer(dial Dialer) Dialer {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // it only fails on a closed connection
			limitUndelivered(tcp, f.term.timing.slack())
		}
		return fencedConn{c, f.term}, nil
	}
}

// fencedConn is a connection that sends nothing after the term.
type fencedConn struct {
	net.Conn
	term *term
}

// Write sends p, unless the term is over.
func (c fencedConn) Write(p []byte) (int, error) {
	if !c.term.isOpen() {
		return 0, ErrOver
	}
	return c.Conn.Write(p)
}
