package mapping

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/controller/internal/echo"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
)

var policy = Key[string]{"policies", kube.Key{Namespace: "default", Name: "strict"}}

func batch(change, version string) Batch {
	return Batch{Cause: queue.Cause{Change: change}, Last: echo.ShownVersion{Version: echo.Version{UID: "1", ResourceVersion: version}}}
}

func state(version string) *cache.Object {
	return &cache.Object{Record: cache.Record{ResourceVersion: version}}
}

// It is the example of the comment of Queue.
func TestChangesOfOneObjectAreOneTask(t *testing.T) {
	q := NewQueue[string](func(int) time.Duration { return time.Minute })
	q.Add(policy, batch("added", "5"), nil)
	q.Add(policy, batch("modified", "6"), state("5"))
	q.Add(policy, batch("modified", "7"), state("6"))
	k, task, ok := q.Begin(t.Context())
	if !ok || k != policy || len(task.Replaced) != 2 || task.Replaced[0].ResourceVersion != "5" || task.Replaced[1].ResourceVersion != "6" {
		t.Errorf("%v: %v", k, task)
	}
	if b := task.Changes; b.Last.ResourceVersion != "7" || len(b.Earlier) != 2 || b.Cause.Change != "modified" {
		t.Errorf("the changes are %+v", b)
	}
	q.End(k, Task{}, false)
	select {
	case <-q.Barrier():
		t.Error("a barrier is reached before it was taken")
	default:
	}
}

func TestTooManyStatesAreAnOverflow(t *testing.T) {
	q := NewQueue[string](nil)
	for range maxKept + 1 {
		q.Add(policy, batch("modified", "6"), state("5"))
	}
	_, task, _ := q.Begin(t.Context())
	if !task.HasOverflowed || len(task.Replaced) != maxKept || len(task.Changes.Earlier) != maxKept {
		t.Errorf("overflow: %t, %d states, %d earlier changes", task.HasOverflowed, len(task.Replaced), len(task.Changes.Earlier))
	}
}

func TestAFailedTaskIsRetriedAfterTheBackoffOrTheNextChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue[string](func(int) time.Duration { return time.Minute })
		begin := func(want time.Duration) Task {
			t.Helper()
			start := time.Now()
			_, task, ok := q.Begin(t.Context())
			if waited := time.Since(start); !ok || waited != want {
				t.Errorf("after %s, not %s", waited, want)
			}
			return task
		}
		q.Add(policy, batch("modified", "6"), state("5"))
		q.End(policy, begin(0), true)
		task := begin(time.Minute)
		q.Add(policy, batch("modified", "7"), state("6")) // while the task runs
		q.End(policy, task, true)
		task = begin(0)
		if len(task.Replaced) != 2 {
			t.Errorf("%d states", len(task.Replaced))
		}
		q.End(policy, task, true)
		q.Add(policy, batch("modified", "8"), state("7")) // during the back-off
		q.End(policy, begin(0), false)
		q.Stop()
	})
}
