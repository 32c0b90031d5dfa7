package readycheck

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A check that does not return is not called again meanwhile, delays neither the answer nor the end of the program
// beyond its time, and does not hide another check.
func TestCheckThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		checks := New(ctx, map[string]func(context.Context) error{
			"deaf":    func(context.Context) error { calls.Add(1); <-release; return nil },
			"patient": func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("dial: %w", ctx.Err()) },
			"quick":   func(context.Context) error { return errors.New("no") },
		}, slog.New(slog.DiscardHandler))
		want := "the readiness check deaf fails: it has not returned after 3s\nthe readiness check patient fails: it has not returned after 3s\n" +
			"the readiness check quick fails: no"
		for range 3 {
			began := time.Now()
			if got := strings.Join(checks.Failures(), "\n"); got != want {
				t.Errorf("the checks report %q, not %q", got, want)
			}
			if took := time.Since(began); took > maxTime {
				t.Errorf("the answer took %s", took)
			}
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("the check that hangs was called %d times", n)
		}
		began := time.Now()
		cancel()
		checks.End()
		if took := time.Since(began); took > maxTime {
			t.Errorf("the end took %s", took)
		}
		close(release)
		synctest.Wait()
	})
}
