package restoration

import (
	"sync"
	"time"
)

// minProofInterval is the least time between two lists because of proofs. A server that answers from several
// caches of its own seems to be restored all the time.
const minProofInterval = time.Minute

// proofs counts the proofs that concern one stream. The stream is in doubt from a proof on, until a list is
// complete that began after the proof. All methods can be used concurrently.
type proofs struct {
	mu    sync.Mutex
	count uint64
	// settled is the count when the latest complete list began.
	settled uint64
	last    time.Time
}

// record counts a proof. It reports false, and counts nothing, if the last proof was a moment ago.
func (p *proofs) record() (isCounted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && time.Since(p.last) < minProofInterval {
		return false
	}
	p.count++
	p.last = time.Now()
	return true
}

// current returns the count.
func (p *proofs) current() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// settle records that a list is complete. The list began when the count was count.
func (p *proofs) settle(count uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled = count
}

// isDoubted reports whether the stream is in doubt.
func (p *proofs) isDoubted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count > p.settled
}
