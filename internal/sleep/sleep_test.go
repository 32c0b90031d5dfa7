package sleep_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/sleep"
)

func TestFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		if err := sleep.For(t.Context(), time.Hour); err != nil || time.Since(started) != time.Hour {
			t.Errorf("For returned %v after %v", err, time.Since(started))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the server is gone")
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		started = time.Now()
		if err := sleep.For(ctx, time.Hour); !errors.Is(err, cause) || time.Since(started) != time.Minute {
			t.Errorf("For returned %v after %v", err, time.Since(started))
		}
		if err := sleep.For(ctx, 0); !errors.Is(err, cause) {
			t.Errorf("For with an ended context returned %v", err)
		}
	})
}
