package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/yare-go/yare/operator/internal/connlimit"
)

// MaxBodies bounds the bodies of all calls of a [Capacity] in flight, in bytes. The body of a call whose function has
// not returned counts too.
const MaxBodies = 64 << 20

// Capacity counts the calls in flight and their bodies, and waits for their end. A Capacity is safe for concurrent use.
type Capacity struct {
	bodyOnce sync.Once
	// bytes are the places of all bodies that are kept, one for each byte. It is nil before the first call.
	bytes *Places

	mu sync.Mutex
	// running counts the calls in flight and their functions. A call whose function has not returned counts twice.
	running int
	// idle is closed when running becomes zero. It is nil before the first call.
	idle chan struct{}
	// refused counts the refused calls since the last line about them, which was logged at the time logged.
	refused int
	logged  time.Time
}

// bodies returns the places of the bodies.
func (c *Capacity) bodies() *Places {
	c.bodyOnce.Do(func() { c.bytes = NewPlaces(MaxBodies) })
	return c.bytes
}

// Begin adds a call, or a function that may go on after the answer to its call. The caller ends it by [Capacity.End].
func (c *Capacity) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == 0 {
		c.idle = make(chan struct{})
	}
	c.running++
}

// End ends what [Capacity.Begin] has added.
func (c *Capacity) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 {
		close(c.idle)
	}
}

// Wait waits until no call is in flight, and all functions have returned. It returns an error if ctx ends before.
func (c *Capacity) Wait(ctx context.Context) error {
	for {
		c.mu.Lock()
		running, idle := c.running, c.idle
		c.mu.Unlock()
		if running == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("%d calls of API servers and functions of such calls have not ended: %w", running, ctx.Err())
		}
	}
}

// ReadBody reads the body of a call, which has the most bytes. It returns an error if the length is missing or larger,
// if there is no room for the body (see [Places]), and if the body comes slower than 1 MiB a second after the first two
// seconds. The caller releases the body.
func (c *Capacity) ReadBody(w http.ResponseWriter, r *http.Request, most int64) (*Body, *Refusal) {
	size := r.ContentLength
	switch {
	case size < 0: // API servers send the length
		return nil, &Refusal{http.StatusLengthRequired, errors.New("the header Content-Length is missing")}
	case size > most:
		return nil, &Refusal{http.StatusRequestEntityTooLarge, fmt.Errorf("the body is larger than %d MiB", most>>20)}
	}
	reader := bodyReader{control: http.NewResponseController(w), body: r.Body}
	b := &Body{taken: c.bodies().Take(r.Context(), addressOf(r), size, reader.cancel)}
	if b.taken == nil {
		return nil, &Refusal{http.StatusTooManyRequests, errOverload}
	}
	b.Retain()
	b.Bytes = make([]byte, size)
	err := reader.read(b.Bytes)
	b.taken.Keep()
	var refusal *Refusal
	switch {
	case err == nil:
		connlimit.RecordCall(r.Context())
		return b, nil
	case reader.isCanceled.Load():
		refusal = &Refusal{http.StatusTooManyRequests, errOverload}
	case errors.Is(err, os.ErrDeadlineExceeded):
		refusal = &Refusal{
			http.StatusRequestTimeout, fmt.Errorf("the body of %d bytes came slower than 1 MiB a second", size),
		}
	default:
		refusal = &Refusal{http.StatusBadRequest, err}
	}
	b.Release()
	return nil, refusal
}

// refusalPause is the shortest time between two lines about refused calls.
const refusalPause = time.Minute

// LogRefusal logs that a call was refused, once a minute at most: whoever reaches the port can send calls.
func (c *Capacity) LogRefusal(log *slog.Logger, r *http.Request, refusal *Refusal) {
	c.mu.Lock()
	c.refused++
	n, isDue := c.refused, time.Since(c.logged) >= refusalPause
	if isDue {
		c.refused, c.logged = 0, time.Now()
	}
	c.mu.Unlock()
	if isDue {
		log.Warn("calls to the port of the webhooks were refused", "calls", n, "path", r.URL.Path, "address", addressOf(r),
			"error", refusal.Error())
	}
}
