package restoration

import (
	"math/rand/v2"
	"sync"
	"time"
)

// maxSpread is the time within which the lists and the probes of all streams begin after a restoration. A server that
// was restored a moment ago must not answer all of them at once.
const maxSpread = time.Minute

// spreadTimer calls a function once, after a random time. The zero value is ready for use. All methods can be used
// concurrently.
type spreadTimer struct {
	mu sync.Mutex
	// timer is nil while no call is due.
	timer *time.Timer
}

// start calls f within maxSpread, unless a call is due.
func (s *spreadTimer) start(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		return
	}
	s.timer = time.AfterFunc(rand.N(maxSpread), func() {
		s.mu.Lock()
		s.timer = nil
		s.mu.Unlock()
		f()
	})
}

// stop cancels the call that is due.
func (s *spreadTimer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}
