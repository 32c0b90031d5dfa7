package kube

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// countingConn counts reads. Data arrives in its buffer, as in the buffer of a socket.
type countingConn struct {
	net.Conn
	arrived chan byte
	reads   int
}

func (c *countingConn) Read(p []byte) (int, error) {
	c.reads++
	p[0] = <-c.arrived
	n := 1
	for n < len(p) {
		select {
		case p[n] = <-c.arrived:
			n++
		default:
			return n, nil
		}
	}
	return n, nil
}

// Events that come in a burst are read in few parts, and a single event is not held back.
func TestBurstsAreReadInFewParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const events, size = 1000, 1500
		inner := &countingConn{arrived: make(chan byte, events*size)}
		c := &burstConn{Conn: inner}
		send := func() {
			for range size {
				inner.arrived <- 0
			}
		}
		go func() {
			for range events {
				send()
				time.Sleep(100 * time.Microsecond)
			}
			time.Sleep(time.Second)
			send()
		}()
		buffer := make([]byte, 64<<10)
		for total := 0; total < events*size; {
			n, err := c.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
		if inner.reads > events/5 {
			t.Errorf("%d events were read in %d parts", events, inner.reads)
		}
		// The end of a burst is noticed by a read that has waited. The event comes long after it.
		time.Sleep(500 * time.Millisecond)
		for total := 0; total < size; {
			n, err := c.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
		// Now a single event is read as soon as it arrives.
		sent := make(chan time.Time, 1)
		go func() {
			time.Sleep(time.Second)
			sent <- time.Now()
			send()
		}()
		if _, err := c.Read(buffer); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(<-sent); d != 0 {
			t.Errorf("a single event was held back for %s", d)
		}
	})
}
