package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

// It is the example of the comment of Debouncer.
func TestDebouncerReleasesTheLastTriggerOfABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var released []Trigger
		var at []time.Duration
		d := NewDebouncer(2*time.Second, func(trigger Trigger) {
			released, at = append(released, trigger), append(at, time.Since(start))
		})
		for _, trigger := range []Trigger{echo(a), echo(a), high(a)} {
			d.Add(trigger)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(released) != 1 || at[0] != 4*time.Second || released[0].Cause.Change != "fresh" || released[0].Echo != NotEcho {
			t.Errorf("released: %v at %v", released, at)
		}
	})
}

func TestDebouncerHoldsBackForTenQuietTimesAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var first time.Duration
		d := NewDebouncer(2*time.Second, func(Trigger) {
			if first == 0 {
				first = time.Since(start)
			}
		})
		for range 30 {
			d.Add(high(a))
			time.Sleep(time.Second)
		}
		d.Stop()
		synctest.Wait()
		if first != 20*time.Second {
			t.Errorf("released at %s", first)
		}
	})
}
