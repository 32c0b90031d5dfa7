package yaretest

import (
	"context"
	"sync"
)

// Moment is when a connection is cut.
type Moment int

// The moments. A client cannot tell them apart.
const (
	// BeforeWrite is before the server has heard of the write.
	BeforeWrite Moment = iota
	// AfterWrite is when the server has carried it out, and before the client hears of it.
	AfterWrite
)

func (m Moment) String() string {
	if m == BeforeWrite {
		return "before"
	}
	return "after"
}

// CutAtWrite cuts the way at the n-th write from now on, counted from 1.
func (p *Proxy) CutAtWrite(n int, when Moment) {
	p.fault.mu.Lock()
	defer p.fault.mu.Unlock()
	p.fault.at, p.fault.when = p.fault.writes+n, when
}

// CutNow breaks all connections, and lets nothing through until Mend.
func (p *Proxy) CutNow() { p.fault.cut() }

// Cut is closed when the way has been cut.
func (p *Proxy) Cut() <-chan struct{} {
	p.fault.mu.Lock()
	defer p.fault.mu.Unlock()
	return p.fault.alive.Done()
}

// Mend lets requests through again, with no further cut.
func (p *Proxy) Mend() {
	p.fault.mu.Lock()
	defer p.fault.mu.Unlock()
	p.fault.end()
	p.fault.init()
	p.fault.at = 0
}

// fault decides which requests get through.
type fault struct {
	mu sync.Mutex
	// alive ends with the cut, and with it all requests that were let through.
	alive context.Context
	end   context.CancelFunc
	// writes counts those that have come, at is the one that cuts; 0 is none.
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

// admit lets a request through, or not. The context that it returns ends with the cut.
// The number of a write is noted in write, which is nil for a read.
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

// strikes cuts if this write is the one to cut at.
func (f *fault) strikes(write *int, when Moment) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if write == nil || *write != f.at || f.when != when {
		return false
	}
	f.end()
	return true
}
