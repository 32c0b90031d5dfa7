package clock_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

// job is a member that works from time to time.
type job struct {
	sync.Mutex
	isWorking bool
}

func (j *job) IsAtRestLocked() bool                  { return !j.isWorking }
func (j *job) UntilDueLocked() (time.Duration, bool) { return 0, false }
func (j *job) AfterMoveLocked()                      {}
func (j *job) IsWorkingLocked() bool                 { return j.isWorking }

func (j *job) set(isWorking bool) {
	j.Lock()
	defer j.Unlock()
	j.isWorking = isWorking
}

// A program writes to a file whether a reconcile is under way, so that an exploration does not take silence for rest.
func TestReportActivity(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "activity")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := clock.ReportActivity(t.Context(), path)
		defer stop()
		j := &job{}
		defer clock.From(ctx).Add("job", j)()
		for _, test := range []struct {
			isWorking bool
			want      string
		}{{false, clock.Idle}, {true, clock.Working}, {false, clock.Idle}} {
			j.set(test.isWorking)
			time.Sleep(time.Second)
			if got, err := os.ReadFile(path); err != nil || string(got) != test.want {
				t.Errorf("while working is %t the file has %q, %v", test.isWorking, got, err)
			}
		}
	})
	if ctx, _ := clock.ReportActivity(t.Context(), ""); clock.From(ctx) != nil {
		t.Error("a program without a file has another clock")
	}
}
