package certificates

import (
	"testing"
	"testing/synctest"
	"time"
)

// A Date more than a day from the expected one is believed after a second one.
func TestServerClock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what    string
		machine time.Duration   // the clock of the machine, less the real time
		dates   []time.Duration // the Dates, less the real time
		want    time.Duration   // the time of the clock, less the real time
		isKnown bool
	}{
		{"the machine and the server agree", 0, []time.Duration{time.Second}, time.Second, true},
		{"the machine is ahead", 40 * day, []time.Duration{0}, 0, false},
		{"the machine is ahead, and a second answer comes", 40 * day, []time.Duration{0, 0}, 0, true},
		{"the machine is behind", -40 * day, []time.Duration{0, time.Second}, time.Second, true},
		{"the server is ahead for one answer", 0, []time.Duration{0, 40 * day}, 0, true},
		{"the server is ahead for one answer of three", 0, []time.Duration{0, 40 * day, 0}, 0, true},
		{"the server is ahead", 0, []time.Duration{0, 40 * day, 40 * day}, 40 * day, true},
		{"the server is set back", 0, []time.Duration{0, -40 * day, -40 * day}, -40 * day, true},
		{"each answer has another Date", 0, []time.Duration{0, -40 * day, 40 * day}, 0, true},
		{"each answer of a first server has another Date", 5 * day, []time.Duration{0, -40 * day, 40 * day}, 0, false},
		{"small steps", 0, []time.Duration{0, 20 * time.Hour, 40 * time.Hour}, 40 * time.Hour, true},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newServerClock(func() time.Time { return time.Now().Add(test.machine) })
				for _, d := range test.dates {
					c.record(time.Now().Add(d))
					time.Sleep(3 * day) // as long as a watch may last at most, and longer
				}
				now, _ := c.now()
				isKnown := !now.IsZero()
				if got := time.Until(now); isKnown != test.isKnown || isKnown && got != test.want {
					t.Errorf("the time is off by %s, want %s; known: %t", got, test.want, isKnown)
				}
			})
		})
	}
}
