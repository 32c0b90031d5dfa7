package kube

import (
	"context"
	"net"
	"time"
)

// burstConn is a connection that reads bursts in larger parts. An API server sends each event of a
// streaming list by itself. Each arrival wakes up the program, which costs more than reading the event.
// So during a burst burstConn waits for a moment before it reads again, until several events have arrived.
// A part that arrives alone is read at once.
//
// For example, 16 reads in a row follow less than 0.3 ms after the read before. That begins a burst. From then on a
// read that has nothing left to return waits for 1 ms. The burst ends with a wait in which less than 4 KB arrive.
//
// Only one goroutine at a time may read the connection. TLS above it keeps that rule.
type burstConn struct {
	net.Conn
	// isDrained is true if the last read returned all that had arrived.
	isDrained bool
	// isBurst is true if much arrives in small parts.
	isBurst bool
	// quickReads counts the reads in a row that followed soon after another.
	quickReads int
	lastRead   time.Time
}

const (
	// burstReads is how many quick reads in a row begin a burst.
	burstReads = 16
	// burstGap is the longest time between two quick reads.
	burstGap = 300 * time.Microsecond
	// burstWait is how long a read waits during a burst.
	burstWait = time.Millisecond
	// minBurstBytes is how many bytes must have arrived during the wait for the burst to go on.
	minBurstBytes = 4 << 10
)

// Read reads what has arrived.
func (c *burstConn) Read(p []byte) (int, error) {
	hasWaited := c.isBurst && c.isDrained
	if hasWaited {
		time.Sleep(burstWait)
	}
	n, err := c.Conn.Read(p)
	now := time.Now()
	c.isDrained = n < len(p)
	switch {
	case hasWaited && n < minBurstBytes && c.isDrained:
		c.isBurst, c.quickReads = false, 0
	case c.isBurst:
	case now.Sub(c.lastRead) > burstGap:
		c.quickReads = 0
	default:
		c.quickReads++
		c.isBurst = c.quickReads >= burstReads
	}
	c.lastRead = now
	return n, err
}

// burstDialer returns a function that calls dial. The connections of the function read bursts in larger
// parts.
func burstDialer(
	dial func(ctx context.Context, network, address string) (net.Conn, error),
) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &burstConn{Conn: c}, nil
	}
}
