package yaretest

import (
	"net/http"
	"sync"

	"github.com/yare-go/yare/internal/proxy"
)

// moment is when a connection is cut. A client sees no difference between them.
type moment int

const (
	beforeWrite moment = iota
	afterWrite
)

// cutter is the hook that cuts a proxy.
type cutter struct {
	mu sync.Mutex
	// session is the session whose connections are cut. It is nil before the first request.
	session *proxy.Session
	// cut is closed when the proxy is cut. mend replaces the channel.
	cut   chan struct{}
	isCut bool
	// writeCount counts the writes so far. cutAtWrite is the number of the write at which the proxy is to be cut, or 0.
	writeCount, cutAtWrite int
	// when is the moment of the cut at that write.
	when moment
}

func newCutter() *cutter { return &cutter{cut: make(chan struct{})} }

// RoundTrip implements [proxy.Hook].
func (c *cutter) RoundTrip(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	write, ok := c.admit(x)
	if !ok {
		return nil, proxy.ErrBroken
	}
	response, err := next(r)
	if err != nil || !c.cutAfter(write) {
		return response, err
	}
	response.Body.Close()
	x.Record(func(r *proxy.RequestRecord) { r.Code = response.StatusCode })
	return nil, proxy.ErrBroken
}

// admit reports whether a request is forwarded, and returns the number of a write, or 0 for a read. It cuts the proxy
// before the write at which the proxy is to be cut.
func (c *cutter) admit(x *proxy.Exchange) (write int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = x.Session
	if c.isCut {
		return 0, false
	}
	if !x.Verb.IsWrite() {
		return 0, true
	}
	c.writeCount++
	if c.writeCount == c.cutAtWrite && c.when == beforeWrite {
		c.cutLocked()
		return 0, false
	}
	return c.writeCount, true
}

// cutAfter cuts the proxy if it is to be cut after a write, and reports whether it did.
func (c *cutter) cutAfter(write int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if write == 0 || write != c.cutAtWrite || c.when != afterWrite {
		return false
	}
	c.cutLocked()
	return true
}

func (c *cutter) cutLocked() {
	if !c.isCut {
		c.isCut = true
		close(c.cut)
	}
	if c.session != nil {
		c.session.Break()
	}
}

// cutNow cuts the proxy.
func (c *cutter) cutNow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cutLocked()
}

// cutAt cuts the proxy at the n-th write from now on.
func (c *cutter) cutAt(n int, when moment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cutAtWrite, c.when = c.writeCount+n, when
}

// wasCut returns a channel that is closed when the proxy has been cut.
func (c *cutter) wasCut() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// mend ends a cut.
func (c *cutter) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut {
		c.isCut, c.cut = false, make(chan struct{})
	}
	c.cutAtWrite = 0
}
