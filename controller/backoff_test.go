package controller_test

import (
	"testing"
	"time"

	"github.com/yare-go/yare/controller"
)

// The waits after failures are those of the guide: half a second at most at first, up to twice as long each time, and five
// minutes at most. Half of each wait is random.
func TestDefaultBackoff(t *testing.T) {
	t.Parallel()
	for attempt, longest := range map[int]time.Duration{
		0: 500 * time.Millisecond, 1: 500 * time.Millisecond, 2: time.Second, 3: 2 * time.Second, 9: 128 * time.Second, 10: 256 * time.Second,
		11: 5 * time.Minute, 20: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		waits := make(map[time.Duration]bool)
		for range 100 {
			wait := controller.DefaultBackoff(attempt)
			if wait < longest/2 || wait > longest {
				t.Errorf("attempt %d: the wait is %s, want between %s and %s", attempt, wait, longest/2, longest)
			}
			waits[wait] = true
		}
		if len(waits) < 50 {
			t.Errorf("attempt %d: 100 waits have only %d values", attempt, len(waits))
		}
	}
}
