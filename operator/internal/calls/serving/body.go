package serving

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A body that has taken longer than bodyGrace, and a longer answer, has to keep up with bodyRate, in bytes for each
// second after that. An API server sends a body at once.
const (
	bodyGrace = 2 * time.Second
	bodyRate  = 1 << 20
)

// Body is the body of a call. Its bytes count in the [Capacity] until each holder has released them.
type Body struct {
	Bytes   []byte
	taken   *Taken
	holders atomic.Int32
}

// Retain adds a holder, such as a function that may go on after the answer to its call.
func (b *Body) Retain() { b.holders.Add(1) }

// Release ends what [Capacity.ReadBody] or [Body.Retain] has begun.
func (b *Body) Release() {
	if b.holders.Add(-1) == 0 {
		b.taken.Release()
	}
}

// Refusal is the error of a call that is not answered by a review. Code is the HTTP status of the answer.
type Refusal struct {
	Code int
	err  error
}

func (r *Refusal) Error() string { return r.err.Error() }

// IsOverload reports whether the API server shall repeat the call.
func (r *Refusal) IsOverload() bool { return r.Code == http.StatusTooManyRequests }

// errOverload is the error of a call without a place.
var errOverload = errors.New("this replica has too many calls of webhooks in flight")

// bodyReader reads one body. cancel may be called concurrently.
type bodyReader struct {
	control    *http.ResponseController
	body       io.Reader
	isCanceled atomic.Bool
}

// cancel ends read.
func (b *bodyReader) cancel() {
	b.isCanceled.Store(true)
	_ = b.control.SetReadDeadline(time.Unix(1, 0)) // a connection that is closed has no body either
}

// read fills content. It returns an error when the body is too slow.
func (b *bodyReader) read(content []byte) error {
	began := time.Now()
	for n := 0; n < len(content); {
		// Two seconds and the time of what has been read. A test without a connection has no deadline.
		_ = b.control.SetReadDeadline(began.Add(bodyGrace + time.Duration(n)*time.Second/bodyRate))
		if b.isCanceled.Load() {
			return errOverload
		}
		more, err := b.body.Read(content[n:])
		if n += more; n < len(content) && err != nil {
			return err
		}
	}
	// The server waits for the end of the connection while it answers.
	_ = b.control.SetReadDeadline(time.Time{})
	return nil
}

// WriteAnswer writes a review. A caller that does not read it has as long as for a body.
func WriteAnswer(w http.ResponseWriter, review []byte) {
	w.Header().Set("Content-Type", "application/json")
	limit := bodyGrace + time.Duration(len(review))*time.Second/bodyRate
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit)) // a test has no connection
	_, _ = w.Write(review)                                                    // an API server that is gone repeats nothing
}

// TakePlace takes a place for a call. It returns nil if there is none.
func TakePlace(ctx context.Context, places *Places, r *http.Request) (*Taken, *Refusal) {
	if t := places.Take(ctx, addressOf(r), 1, nil); t != nil {
		return t, nil
	}
	return nil, &Refusal{http.StatusTooManyRequests, errOverload}
}

// addressOf returns the address of the caller, without its port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr // that of a Unix socket
	}
	return host
}
