package watch

import (
	"math/rand/v2"
	"time"

	"github.com/yare-go/yare/kube"
)

const (
	minBackoff = 500 * time.Millisecond
	maxBackoff = 30 * time.Second
	// maxMissingBackoff limits the wait for a resource that the server does not serve: its
	// definition is likely to be on its way.
	maxMissingBackoff = 5 * time.Second
)

// backoff counts failures in a row, each kind by itself. That a server was away shows neither
// which versions it knows, nor how busy it is when it is back. Each stream has a backoff of its
// own.
type backoff struct {
	// failures counts failures since a list was complete, or a watch made progress.
	failures int
	// busyAnswers counts the answers that ask to come later, since the same moment.
	busyAnswers int
	// versionRefusals counts the answers that refuse the current version.
	versionRefusals int
	// lostVersions counts the versions that were given up since a watch made progress. Each lost
	// version costs a list, so a server that accepts no version must not be asked without pause.
	lostVersions int
}

// recordList records that a list is complete.
func (b *backoff) recordList() { b.failures, b.busyAnswers, b.versionRefusals = 0, 0, 0 }

// recordProgress records that a watch made progress. A connection that was accepted is no progress.
func (b *backoff) recordProgress() { *b = backoff{} }

// backoffDelay returns the wait after the nth failure in a row, err. It is 0 for n = 0.
func backoffDelay(err error, n int) time.Duration {
	if n <= 0 {
		return 0
	}
	d := min(minBackoff<<min(n-1, 10), maxBackoff)
	if kube.IsNoResource(err) {
		d = min(d, maxMissingBackoff)
	}
	// Half of the wait is random, so that many clients do not return at the same time.
	d = d/2 + rand.N(d/2)
	if e, ok := kube.AsError(err); ok {
		d = max(d, e.RetryDelay())
	}
	return d
}
