package yaretest

import (
	"context"
	"sync"
)

// Moment is when a connection is cut.
type Moment int

// The moments. A client sees no difference between them.
const (
	// BeforeWrite is before the server receives the write.
	BeforeWrite Moment = iota
	// AfterWrite is after the server carried out the write, and before the client receives the
	// answer.
	AfterWrite
)

func (m Moment) String() string {
	if m == BeforeWrite {
		return "before"
	}
	return "after"
}

// CutAtWrite cuts the proxy at the n-th write from now on, counted from 1.
func (p *Proxy) CutAtWrite(n int, when Moment) {
	p.fault.mu.Lock()
	defer p.fault.mu.Unlock()
	p.fault.at, p.fault.when = p.fault.writes+n, when
}

// CutNow breaks all connections, and refuses new ones until Mend.
func (p *Proxy) CutNow() { p.fault.cut() }

// Cut returns a channel that is closed when the proxy has been cut.
func (p *Proxy) Cut() <-chan struct{} {
	p.fault.mu.Lock()
	defer p.fault.mu.Unlock()
	return p.fault.alive.Done()
}

// Mend ends a cut, and cancels a CutAtWrite that has not happened yet.
func (p *Proxy) Mend() {
	p.fault.mu.Lock()
	defer p.fault.mu.Unlock()
	p.fault.end()
	p.fault.init()
	p.fault.at = 0
}

// fault decides which requests are forwarded.
type fault struct {
	mu sync.Mutex
	// alive ends with the cut, and with it all requests that were admitted.
	alive context.Context
	end   context.CancelFunc
	// writes counts the writes so far. at is the number of the write that cuts, 0 for none.
	writes int
	at     int
	when   Moment
}

func (f *fault) init() { f.alive, f.end = context.WithCancel(context.Background()) }

func (f *fault) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
}

// admit reports whether a request is forwarded. The context that it returns ends with the cut.
// admit stores the number of a write in write, which is nil for a read.
func (f *fault) admit(ctx context.Context, write *int) (context.Context, func(), bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.alive.Err() != nil {
		return nil, nil, false
	}
	if write != nil {
		f.writes++
		*write = f.writes
		if *write == f.at && f.when == BeforeWrite {
			f.end()
			return nil, nil, false
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(f.alive, cancel)
	return ctx, func() { stop(); cancel() }, true
}

// cutsAt cuts the proxy if this is the write and the moment to cut at, and reports whether it
// did.
func (f *fault) cutsAt(write *int, when Moment) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if write == nil || *write != f.at || f.when != when {
		return false
	}
	f.end()
	return true
}
