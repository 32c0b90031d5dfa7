package watch

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/yare-go/yare/kube"
)

const (
	shortestWait = 500 * time.Millisecond
	longestWait  = 30 * time.Second
	// missingWait bounds the wait for a resource that the server does not serve: somebody
	// is likely to be putting its definition in place.
	missingWait = 5 * time.Second
)

// backoff says how long to wait after failures in a row. Each stream has its own.
type backoff struct{ failures int }

// progress resets it. A connection that was accepted is no progress; an event is.
func (b *backoff) progress() { b.failures = 0 }

// wait waits as long as err, and those before it, deserve.
func (b *backoff) wait(ctx context.Context, err error) {
	d := min(shortestWait<<min(b.failures, 10), longestWait)
	if kube.IsNoResource(err) {
		d = min(d, missingWait)
	}
	b.failures++
	// Half of it is left to chance, so that many clients do not come back as one.
	d = d/2 + rand.N(d/2)
	if e, ok := kube.AsError(err); ok {
		d = max(d, e.RetryAfter)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
