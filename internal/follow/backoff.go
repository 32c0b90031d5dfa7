package follow

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

const (
	minBackoff = 500 * time.Millisecond
	maxBackoff = 30 * time.Second
	// maxMissingBackoff limits the wait for a resource that the server does not serve: its
	// definition is likely to be on its way.
	maxMissingBackoff = 5 * time.Second
	// quietBusyAnswers is the number of answers in a row that may ask to come later before
	// such an answer is reported.
	quietBusyAnswers = 3
	// maxVersionRefusals is the number of answers in a row that refuse a version until the
	// version is given up.
	maxVersionRefusals = 4
)

// backoff counts failures in a row, each kind of failure by itself. An outage of the server shows neither which
// versions the server knows, nor how busy it is afterwards. Each stream has a backoff of its own.
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
	// hasProgressed is true if the current watch has made progress.
	hasProgressed bool
}

// beginWatch records that a watch begins.
func (b *backoff) beginWatch() { b.hasProgressed = false }

// recordList records that a list is complete.
func (b *backoff) recordList() {
	b.failures, b.busyAnswers, b.versionRefusals, b.hasProgressed = 0, 0, 0, true
}

// recordProgress records that a watch made progress. A connection that was accepted is no progress.
func (b *backoff) recordProgress() { *b = backoff{hasProgressed: true} }

// reaction is what follows from an error.
type reaction struct {
	// needsList is true if the version of the stream is given up, so that a list is due.
	needsList  bool
	isReported bool
	delay      time.Duration
}

// recordError records an error and returns the reaction to it. hasVersion is true if the stream has a version to
// watch from.
func (b *backoff) recordError(err error, hasVersion bool) reaction {
	r := reaction{isReported: true}
	var n int // the failures of this kind in a row
	switch {
	case errors.Is(err, errRestored):
		r.needsList = true
	case errors.Is(err, errRelist):
		r.needsList, r.isReported = true, false
		n = b.lostVersions
		b.lostVersions++
	case kube.HasReason(err, metav1.StatusReasonGone):
		// A version expires sooner or later. The fresh list waits only if the list before
		// was of no use.
		r.needsList, r.isReported = true, b.lostVersions > 0
		n = b.lostVersions
		b.lostVersions++
	case errors.Is(err, errEndedEarly) && b.hasProgressed:
		n, r.isReported = 1, false
	case kube.IsTooManyRequests(err), isVersionTooLarge(err):
		// A server answers so when it is busy for a moment, when it has just started, when a
		// custom resource is new to it, and while it lags behind etcd.
		b.busyAnswers++
		n, r.isReported = b.busyAnswers, b.busyAnswers > quietBusyAnswers
	default:
		b.failures++
		n = b.failures
	}
	if hasVersion && !r.needsList && isVersionRefusal(err) {
		if b.versionRefusals++; b.versionRefusals >= maxVersionRefusals {
			r.needsList = true
			b.versionRefusals = 0
			n = max(n, b.lostVersions)
			b.lostVersions++
		}
	}
	r.delay = backoffDelay(err, n)
	return r
}

// backoffDelay returns the wait after err, the nth failure in a row: 250 to 500 ms after the first, 500 ms to 1 s after
// the second, and 15 to 30 s after the seventh. It is 0 for n = 0.
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

// isVersionRefusal reports whether an answer to a watch may be due to its version. Answers about
// permissions or about what is served, and answers of a server that is away or busy, are not.
func isVersionRefusal(err error) bool {
	e, ok := kube.AsError(err)
	if !ok {
		return false
	}
	if errors.Is(err, errBadFrame) {
		return true
	}
	switch e.Code {
	case 0, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout,
		http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return false
	case http.StatusGatewayTimeout:
		return isVersionTooLarge(err)
	}
	return true
}

// isVersionTooLarge reports whether the server has not reached the version that it was asked
// for. API servers that lag behind etcd give lists this answer. A watch from such a version is
// silent until the server reaches the version.
func isVersionTooLarge(err error) bool {
	e, ok := kube.AsError(err)
	if !ok || e.Answer.Details == nil {
		return false
	}
	return slices.ContainsFunc(e.Answer.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeResourceVersionTooLarge
	})
}
