package yaretest

import (
	"os"
	"testing"
	"time"
)

// timeoutVariable is the environment variable that sets how long the functions of this package
// wait, as a duration such as 3m. The default is one minute. A test sets its own with [Within].
const timeoutVariable = "YARETEST_TIMEOUT"

// defaultTimeout is how long anything may take that a test waits for.
const defaultTimeout = time.Minute

// timeoutMargin is how long before the end of all tests (go test -timeout) a wait fails. Otherwise go test would end
// the process before the error of the wait is shown.
const timeoutMargin = 5 * time.Second

// Within returns t for functions of this package that wait, with the timeout d in place of the timeout
// of YARETEST_TIMEOUT:
//
//	yaretest.WaitForCondition(yaretest.Within(t, 5*time.Minute), backups, "all", "Complete")
func Within(t testing.TB, d time.Duration) testing.TB {
	t.Helper()
	if d <= 0 {
		t.Fatalf("the timeout %s is not positive: give yaretest.Within a duration such as 5*time.Minute", d)
	}
	return testWithTimeout{t, d}
}

// testWithTimeout is a test with a timeout of its own: see [Within].
type testWithTimeout struct {
	testing.TB
	timeout time.Duration
}

// timeoutOf returns how long t may wait.
func timeoutOf(t testing.TB) time.Duration {
	t.Helper()
	d := defaultTimeout
	p, hasTimeout := t.(testWithTimeout)
	text := os.Getenv(timeoutVariable)
	switch {
	case hasTimeout:
		d, t = p.timeout, p.TB
	case text != "":
		var err error
		if d, err = time.ParseDuration(text); err != nil || d <= 0 {
			t.Fatalf("%s=%s is not a positive duration: write it as 90s or 5m, or unset it", timeoutVariable, text)
		}
	}
	// testing.B and testing.F have no deadline.
	if timed, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, isSet := timed.Deadline(); isSet {
			d = max(min(d, time.Until(deadline)-timeoutMargin), 0)
		}
	}
	return d
}
