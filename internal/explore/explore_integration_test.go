package explore_test

import (
	"testing"
	"time"

	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/yaretest"
)

// The WebApp example passes what its exploration runs within a bounded time.
// What goes beyond the promises of an API server does not harm an operator that uses yare: events that come
// twice, and objects of its kind that it cannot decode.
func TestBeyondTheContract(t *testing.T) {
	t.Parallel()
	coverage := yaretest.Explore(t, yaretest.Binary{Path: "../../examples/webapp"}, yaretest.Only("watch-twice", "unreadable"))
	for _, k := range []schedule.Kind{schedule.WatchTwice, schedule.Unreadable} {
		if count := coverage.Kinds[k]; count.Total == 0 || count.Done < count.Total {
			t.Errorf("runs with %s: %+v", k, count)
		}
	}
}

func TestExploreWebApp(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	coverage := yaretest.Explore(t, yaretest.Binary{Path: "../../examples/webapp", Cover: true}, yaretest.Budget(45*time.Second))
	if coverage.Points.Total == 0 || coverage.Kinds[schedule.Crash].Total == 0 {
		t.Errorf("the exploration has planned no run with a crash: %+v", coverage)
	}
	if count := coverage.Statements["github.com/yare-go/yare/examples/webapp"]; count.Done == 0 || count.Total < count.Done {
		t.Errorf("the statements of the example that have run are %+v, of all packages %v", count, coverage.Statements)
	}
}
