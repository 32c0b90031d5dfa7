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

// backoff says how long to wait after failures in a row. Each stream has its own. What can
// go wrong by itself is counted by itself: that a server is away for a while says nothing
// about the versions that it knows, nor about how busy it is when it is back.
type backoff struct {
	// failures are those since a list was complete, or a watch was of use.
	failures int
	// expiries are the lists that a lost version led to since a watch was of use: a version
	// that is always too old must not make for a list after the other.
	expiries int
	// refusals are the answers in a row that ask to come later.
	refusals int
}

// listed notes that a list is complete.
func (b *backoff) listed() { b.failures, b.refusals = 0, 0 }

// progress notes that a watch is of use. A connection that was accepted is no progress; an
// event is.
func (b *backoff) progress() { *b = backoff{} }

// wait waits as long as err deserves after so many of its kind, unless ctx ends.
func wait(ctx context.Context, err error, before int) {
	d := min(shortestWait<<min(before, 10), longestWait)
	if kube.IsNoResource(err) {
		d = min(d, missingWait)
	}
	// Half of it is left to chance, so that many clients do not come back as one.
	d = d/2 + rand.N(d/2)
	if e, ok := kube.AsError(err); ok {
		d = max(d, e.RetryDelay())
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
