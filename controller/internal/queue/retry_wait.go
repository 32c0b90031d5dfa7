package queue

import "time"

// RetryWait is the wait for the retry after failures in a row. It grows by time, and not by the number of failures: a
// failure during the wait, such as that of a reconcile that a change has started, does not delay the retry.
//
// An example with waits of 1 s, 2 s, 4 s and so on:
//
//	at      what fails                        attempt  the retry is at
//	0 s     a reconcile                       1        1 s
//	0.3 s   a reconcile because of a change   1        1 s
//	1 s     the retry                         2        3 s
type RetryWait struct {
	// attempt is the number of waits in a row, and end is when the last of them ends.
	attempt int
	end     time.Time
}

// Next returns the time from now, when something has failed, to the retry. delay returns the wait of an attempt, from 1
// on. The time is not shorter than demanded, the wait that a server demands.
func (w *RetryWait) Next(now time.Time, demanded time.Duration, delay func(attempt int) time.Duration) time.Duration {
	rest := w.end.Sub(now)
	if rest <= 0 {
		w.attempt++
	}
	d := delay(w.attempt)
	if rest > 0 {
		d = min(d, rest)
	}
	d = max(d, demanded)
	w.end = now.Add(d)
	return d
}
