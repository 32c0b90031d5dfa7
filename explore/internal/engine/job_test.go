package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestRunJobs(t *testing.T) {
	t.Parallel()
	failure := errors.New("the run cannot be made")
	for name, test := range map[string]struct {
		until      time.Time
		fails      bool
		isComplete bool
		want       int64
	}{
		"all runs":               {time.Time{}, false, true, 3},
		"no run after the time":  {time.Now().Add(-time.Second), false, false, 0},
		"no run after a failure": {time.Time{}, true, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var count atomic.Int64
			isComplete, err := runJobs(t.Context(), newJobQueue(make([]job, 3), nil, false), 1, test.until, func(context.Context, job, bool) error {
				count.Add(1)
				if test.fails {
					return failure
				}
				return nil
			})
			if test.fails != errors.Is(err, failure) || isComplete != test.isComplete || count.Load() != test.want {
				t.Errorf("runs %d, complete %t: %v", count.Load(), isComplete, err)
			}
		})
	}
}
