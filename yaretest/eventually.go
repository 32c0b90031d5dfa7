package yaretest

import (
	"testing"
	"time"
)

// pollInterval is the time between two checks of what a test waits for.
const pollInterval = 20 * time.Millisecond

// Eventually calls check until it returns nil. When the timeout is over (see YARETEST_TIMEOUT and
// [Within]) it fails t with the last error. When a program of [RunParts] has failed, it fails t at once with the error
// of the program.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	timeout := timeoutOf(t)
	deadline := time.Now().Add(timeout)
	for {
		err := check()
		if err == nil {
			return
		}
		if programErr := failedPrograms.errorFor(t); programErr != nil {
			t.Fatalf("the program has failed: %v; until then: %v", programErr, err)
		}
		if !time.Now().Before(deadline) {
			t.Fatalf("not within %s: %v", timeout.Round(time.Millisecond), err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the test ended first: %v", err)
		case <-time.After(pollInterval):
		}
	}
}

// Consistently calls check again and again for d. If check returns an error, it fails t with the
// error at once. It shows that something does not happen, if d is long enough: wait with
// [Eventually] for what must have happened before. Like Eventually, it ends when a program has failed.
func Consistently(t testing.TB, d time.Duration, check func() error) {
	t.Helper()
	begun := time.Now()
	for {
		if err := check(); err != nil {
			t.Fatalf("after %s of %s: %v", time.Since(begun).Round(time.Millisecond), d, err)
		}
		if err := failedPrograms.errorFor(t); err != nil {
			t.Fatalf("after %s of %s the program has failed: %v", time.Since(begun).Round(time.Millisecond), d, err)
		}
		left := d - time.Since(begun)
		if left <= 0 {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the test ended after %s of %s", time.Since(begun).Round(time.Millisecond), d)
		case <-time.After(min(pollInterval, left)):
		}
	}
}
