package twins

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/explore"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/yaretest"
)

// The environment variables of [TestExplore].
const (
	// allVariable is set to explore all twins. Otherwise one is explored, because each takes a minute or more.
	allVariable = "YARE_TWINS"
	// seedVariable is the seed of the explorations. Default: 1.
	seedVariable = "YARE_TWINS_SEED"
)

// An exploration finds the mistake of each wrong operator, and nothing in its right twin.
func TestExplore(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	seed := uint64(1)
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	cluster := yaretest.Start(t)
	yaretest.Define[Site](t, cluster)
	for _, twin := range twins() {
		if os.Getenv(allVariable) == "" && twin.name != "keeps progress in memory only" {
			continue
		}
		options := explore.Options{Config: cluster.Config(), Steps: twin.steps, Seed: seed, Only: twin.kinds()}
		t.Run(twin.name+"/wrong", func(t *testing.T) {
			t.Parallel()
			requireFound(t, twin, options)
		})
		t.Run(twin.name+"/right", func(t *testing.T) {
			t.Parallel()
			requireNotFound(t, twin, options)
		})
	}
}

// kinds returns the kinds of faults that show the mistake.
func (t twin) kinds() []schedule.Kind {
	if len(t.finds) == 0 {
		return []schedule.Kind{explore.Transition}
	}
	return t.finds
}

// requireFound fails t unless an exploration of the wrong operator finds the mistake. The exploration
// ends with its first finding.
func requireFound(t *testing.T, twin twin, o explore.Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Progress = func(p explore.Progress) {
		if p.Findings > 0 {
			cancel()
		}
	}
	began := time.Now()
	record, err := explore.Explore(ctx, explore.Parts("twin", twin.wrong), o)
	took := time.Since(began).Round(time.Second)
	switch {
	case twin.verdict == finding.Busy:
		if !errors.Is(err, explore.ErrNoReference) {
			t.Fatalf("the operator comes to rest: %v", err)
		}
		t.Logf("seed %d: it does not come to rest, after %s: %v", o.Seed, took, err)
		return
	case len(record.Findings) == 0:
		t.Fatalf("%d runs in %s found nothing: %v", record.Coverage.Runs, took, err)
	}
	found := record.Findings[0]
	t.Logf("seed %d: %s after %s, in %d runs: %s", o.Seed, found.Verdict, took, record.Coverage.Runs, explore.Summary(found))
	if found.Verdict != twin.verdict {
		t.Errorf("the verdict is %s, want %s", found.Verdict, twin.verdict)
	}
}

// requireNotFound fails t if an exploration of the right operator finds something.
func requireNotFound(t *testing.T, twin twin, o explore.Options) {
	t.Helper()
	record, err := explore.Explore(t.Context(), explore.Parts("twin", twin.right), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d: %d runs in %s", o.Seed, record.Coverage.Runs, record.Coverage.Took.Round(time.Second))
	for _, found := range record.Findings {
		t.Errorf("%s: %s", found.Verdict, explore.Summary(found))
	}
}
