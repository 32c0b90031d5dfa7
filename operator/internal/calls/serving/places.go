package serving

import (
	"context"
	"sync"
	"time"
)

// placeWait is how long a call waits for a place that others have.
const placeWait = time.Second

// Places are a bounded number of places, such as calls in flight or bytes of bodies. While a place is free, every
// address gets it. While none is free, an address that would have the most places is refused, and any other address
// waits for the next place. So an address without many places cannot be kept out. Places are safe for concurrent use.
//
// An example with 4 places. The address a has 3 and b has 1. The next call of a is refused. A call of b waits, and gets
// the place that a gives back. If a calls again, it is refused: both have 2. A call of c waits.
type Places struct {
	size int64

	mu sync.Mutex
	// taken is the sum of held, and at most size.
	taken int64
	// held holds the places that each address has. It has no zeros.
	held map[string]int64
	// waiting are the calls that wait, the oldest one first. While there is one, no place is given to anybody else.
	waiting []*waiter
	// cancels end the takers that can be ended, the oldest one first.
	cancels []*Taken
}

// Taken are places that an address has. Its methods are not safe for concurrent use.
type Taken struct {
	places  *Places
	address string
	n       int64
	// cancel ends the use of the places soon. It is nil if the use cannot be ended.
	cancel func()
}

// waiter is a call that waits for places.
type waiter struct {
	taken *Taken
	// got is closed when the places are taken.
	got chan struct{}
}

// NewPlaces returns n places that are free.
func NewPlaces(n int64) *Places { return &Places{size: n, held: make(map[string]int64)} }

// Take takes n places for an address, and waits a second at most. It returns nil if the address has to wait longer, and
// if ctx ends. Take calls cancel, unless it is nil, when another address waits for the places: the places must be
// released soon after that. cancel must not block, and is not called after [Taken.Keep] and [Taken.Release].
func (p *Places) Take(ctx context.Context, address string, n int64, cancel func()) *Taken {
	t := &Taken{places: p, address: address, n: n, cancel: cancel}
	w, isRefused := p.takeOrWait(t)
	if isRefused {
		return nil
	}
	if w == nil {
		return t
	}
	ctx, stop := context.WithTimeout(ctx, placeWait)
	defer stop()
	select {
	case <-w.got:
		return t
	case <-ctx.Done():
	}
	if p.giveUp(w) {
		return nil
	}
	return t
}

// takeOrWait takes the places of t, or returns a waiter for them, or reports that the address is refused.
func (p *Places) takeOrWait(t *Taken) (w *waiter, isRefused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 && p.taken+t.n <= p.size {
		p.giveLocked(t)
		return nil, false
	}
	wanted := p.held[t.address] + t.n
	for _, each := range p.waiting {
		if each.taken.address == t.address {
			wanted += each.taken.n
		}
	}
	most, busiest := p.busiestLocked(t.address)
	if wanted > most {
		return nil, true
	}
	w = &waiter{taken: t, got: make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.cancelLocked(busiest, t.n)
	return w, false
}

// busiestLocked returns the most places that an address other than this one has, and the address.
func (p *Places) busiestLocked(other string) (most int64, busiest string) {
	for address, n := range p.held {
		if address != other && n > most {
			most, busiest = n, address
		}
	}
	return most, busiest
}

// cancelLocked ends the newest uses of an address, until n places become free.
func (p *Places) cancelLocked(address string, n int64) {
	for i := len(p.cancels) - 1; i >= 0 && n > 0; i-- {
		if each := p.cancels[i]; each.address == address {
			n -= each.n
			each.cancel()
		}
	}
}

// giveLocked gives t its places.
func (p *Places) giveLocked(t *Taken) {
	p.taken += t.n
	p.held[t.address] += t.n
	if t.cancel != nil {
		p.cancels = append(p.cancels, t)
	}
}

// giveUp ends the wait of w. It reports false if w has got its places.
func (p *Places) giveUp(w *waiter) (isRefused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, each := range p.waiting {
		if each == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			p.serveLocked()
			return true
		}
	}
	return false
}

// serveLocked gives free places to the calls that wait. The address with the fewest places comes first.
func (p *Places) serveLocked() {
	for len(p.waiting) > 0 {
		first := 0
		for i, each := range p.waiting {
			if p.held[each.taken.address] < p.held[p.waiting[first].taken.address] {
				first = i
			}
		}
		w := p.waiting[first]
		if p.taken+w.taken.n > p.size {
			return
		}
		p.waiting = append(p.waiting[:first], p.waiting[first+1:]...)
		p.giveLocked(w.taken)
		close(w.got)
	}
}

// Keep keeps the places until [Taken.Release]: their use is not canceled any more.
func (t *Taken) Keep() {
	t.places.mu.Lock()
	defer t.places.mu.Unlock()
	t.keepLocked()
}

func (t *Taken) keepLocked() {
	for i, each := range t.places.cancels {
		if each == t {
			t.places.cancels = append(t.places.cancels[:i], t.places.cancels[i+1:]...)
			return
		}
	}
}

// Release gives the places back. It is called once.
func (t *Taken) Release() {
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	t.keepLocked()
	p.taken -= t.n
	if p.held[t.address] -= t.n; p.held[t.address] == 0 {
		delete(p.held, t.address)
	}
	p.serveLocked()
}
