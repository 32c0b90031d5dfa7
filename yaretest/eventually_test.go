package yaretest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/yaretest"
)

// The test, or its environment, sets how long a wait lasts.
func TestTimeouts(t *testing.T) {
	for name, test := range map[string]struct {
		variable string
		within   time.Duration
		want     time.Duration
	}{
		"default":     {"", 0, time.Minute},
		"environment": {"90s", 0, 90 * time.Second},
		"test":        {"", 5 * time.Second, 5 * time.Second},
		"both":        {"90s", 5 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("YARETEST_TIMEOUT", test.variable)
			synctest.Test(t, func(t *testing.T) {
				r := record(t, "eventually", func(t testing.TB) {
					if test.within > 0 {
						t = yaretest.Within(t, test.within)
					}
					yaretest.Eventually(t, func() error { return errors.New("not yet") })
				})
				r.requireFailure(t, "not yet", test.want.String())
				start := time.Now()
				record(t, "again", func(t testing.TB) {
					if test.within > 0 {
						t = yaretest.Within(t, test.within)
					}
					yaretest.Eventually(t, func() error { return errors.New("not yet") })
				})
				if took := time.Since(start); took < test.want || took > test.want+time.Second {
					t.Errorf("it waited %s, want %s", took, test.want)
				}
			})
		})
	}
	t.Run("bad variable", func(t *testing.T) {
		t.Setenv("YARETEST_TIMEOUT", "90")
		record(t, "x", func(t testing.TB) {
			yaretest.Eventually(t, func() error { return nil })
		}).requireFailure(t, "YARETEST_TIMEOUT=90", "90s")
	})
	t.Run("bad argument", func(t *testing.T) {
		record(t, "x", func(t testing.TB) { yaretest.Within(t, 0) }).requireFailure(t, "yaretest.Within")
	})
}

// expiring is a test that go test ends at a deadline.
type expiring struct {
	testing.TB
	deadline time.Time
}

func (e expiring) Deadline() (time.Time, bool) { return e.deadline, true }

// The error of a wait is shown before go test ends all tests.
func TestWaitEndsBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deadline := time.Now().Add(20 * time.Second)
		record(t, "x", func(t testing.TB) {
			yaretest.Eventually(expiring{t, deadline}, func() error { return errors.New("not yet") })
		}).requireFailure(t, "not yet")
		if left := time.Until(deadline); left <= 0 {
			t.Errorf("it failed %s after the deadline", -left)
		}
		calls := 0
		record(t, "late", func(t testing.TB) {
			yaretest.Eventually(expiring{t, time.Now()}, func() error { calls++; return nil })
		})
		if calls != 1 {
			t.Errorf("at the deadline it checked %d times, want once", calls)
		}
	})
}

func TestConsistently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, calls := time.Now(), 0
		r := record(t, "holds", func(t testing.TB) {
			yaretest.Consistently(t, 3*time.Second, func() error { calls++; return nil })
		})
		if took := time.Since(start); took != 3*time.Second || calls < 10 || len(r.failures) > 0 {
			t.Errorf("it took %s and %d calls: %q", took, calls, r.failures)
		}
		start = time.Now()
		record(t, "breaks", func(t testing.TB) {
			yaretest.Consistently(t, 3*time.Second, func() error {
				if time.Since(start) >= time.Second {
					return errors.New("broken")
				}
				return nil
			})
		}).requireFailure(t, "broken")
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it failed after %s", took)
		}
	})
}
