package clock

import (
	"context"
	"os"
	"sync"
	"time"
)

// ActivityVariable is the environment variable that names the file in which a program says whether it works: see
// [ReportActivity].
const ActivityVariable = "YARE_ACTIVITY_FILE"

// Working and Idle are the contents of the file that [ReportActivity] writes.
const (
	Working = "working\n"
	Idle    = "idle\n"
)

// activityInterval is the time between two looks at the members.
const activityInterval = 20 * time.Millisecond

// ReportActivity returns a context for a program. While the program runs in the context, ReportActivity writes to the
// file path whether a reconcile of the program is under way. It looks every 20 ms, so that a shorter reconcile can be
// missing. The clock in the context shows the real time. The caller calls stop when the program has ended. With an
// empty path, ReportActivity returns ctx and writes nothing.
func ReportActivity(ctx context.Context, path string) (reported context.Context, stop func()) {
	if path == "" {
		return ctx, func() {}
	}
	c := New()
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() {
		for written := ""; ; {
			content := Idle
			if c.IsWorking() {
				content = Working
			}
			if content != written && os.WriteFile(path, []byte(content), 0o600) == nil {
				written = content
			}
			if SleepReal(watching, activityInterval) != nil {
				return
			}
		}
	})
	return With(ctx, c), func() {
		cancel()
		group.Wait()
	}
}
