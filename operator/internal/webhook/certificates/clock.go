package certificates

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// maxDateDifference is how far the time of the server may be from the expected time without a second request.
const maxDateDifference = 24 * time.Hour

// serverClock is the time of the API server: the header Date of its last answer, and the time that has passed since.
// The time that passes is that of the monotonic clock, which nobody sets.
//
// A Date that is more than a day from the expected time is believed only after a second one has confirmed it. The
// first Date of a process is compared with the clock of this machine. An example, in which the machine is right:
//
//	answer   Date              time of serverClock
//	1        May 1 10:00:00    May 1 10:00:00
//	2        June 9 10:00:05   May 1 10:00:05, and a second request is wanted
//	3        June 9 10:00:06   June 9 10:00:06
type serverClock struct {
	// machineTime returns the time of this machine.
	machineTime func() time.Time
	// changed has an element when a second request is wanted, and when the time has jumped.
	changed chan struct{}

	mu sync.Mutex
	// believed is the last Date that was believed. Its date is zero before the first one.
	believed reading
	// doubted is the last Date, if it is not believed yet. Else its date is zero.
	doubted reading
}

// reading is a Date, and when it arrived.
type reading struct{ date, at time.Time }

// timeAt returns the time of the server at a later time of this machine.
func (r reading) timeAt(at time.Time) time.Time { return r.date.Add(at.Sub(r.at)) }

func newServerClock(machineTime func() time.Time) *serverClock {
	return &serverClock{machineTime: machineTime, changed: make(chan struct{}, 1)}
}

// now returns the time of the server. It is zero while no Date is believed. now reports whether a second request is
// wanted.
func (c *serverClock) now() (now time.Time, isDoubted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.believed.date.IsZero() {
		now = c.believed.timeAt(time.Now())
	}
	return now, !c.doubted.date.IsZero()
}

// record records the Date of an answer.
func (c *serverClock) record(date time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := reading{date, time.Now()}
	expected := c.machineTime()
	isFirst := c.believed.date.IsZero()
	if !isFirst {
		expected = c.believed.timeAt(r.at)
	}
	isExpected := isNear(date, expected)
	if isExpected || !c.doubted.date.IsZero() && isNear(date, c.doubted.timeAt(r.at)) {
		c.believed, c.doubted = r, reading{}
	} else {
		c.doubted = r
	}
	if isFirst || !isExpected {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
}

// isNear reports whether two times differ by a day at most.
func isNear(a, b time.Time) bool { return a.Sub(b).Abs() <= maxDateDifference }

// handler returns a handler that records the Date of each answer. An answer without a Date counts as one with the
// time of this machine. The requests must be for the API server itself: an aggregated API server has its own clock.
func (c *serverClock) handler(next wire.Handler) wire.Handler {
	return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		response, err := next.Do(ctx, r)
		if err == nil {
			date, parseErr := http.ParseTime(response.Header.Get("Date"))
			if parseErr != nil {
				date = c.machineTime()
			}
			c.record(date)
		}
		return response, err
	})
}
