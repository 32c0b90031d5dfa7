package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

func TestSleepReal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		if err := clock.SleepReal(t.Context(), time.Hour); err != nil || time.Since(started) != time.Hour {
			t.Errorf("SleepReal returned %v after %v", err, time.Since(started))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the server is gone")
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		started = time.Now()
		if err := clock.SleepReal(ctx, time.Hour); !errors.Is(err, cause) || time.Since(started) != time.Minute {
			t.Errorf("SleepReal returned %v after %v", err, time.Since(started))
		}
		if err := clock.SleepReal(ctx, 0); !errors.Is(err, cause) {
			t.Errorf("SleepReal with an ended context returned %v", err)
		}
	})
}
