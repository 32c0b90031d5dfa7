package twins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/report"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/yaretest"
)

// The environment variables of the explorations.
const (
	// modeVariable is what is explored. By default each test explores one or two pairs, because a pair takes a minute or more.
	modeVariable = "YARE_TWINS"
	// seedVariable is the seed of the explorations. Default: 1.
	seedVariable = "YARE_TWINS_SEED"
	// budgetVariable bounds each exploration of [TestExploreRight], such as 2m, which is not complete then.
	budgetVariable = "YARE_TWINS_FOR"
	// onlyVariable names the kinds of faults of [TestExploreRight], as --only does, such as user,tools. Default: all.
	onlyVariable = "YARE_TWINS_ONLY"
)

// The values of modeVariable.
const (
	// modeAll is for all pairs, by the kinds of faults that show their mistakes.
	modeAll = "1"
	// modeRight is for [TestExploreRight].
	modeRight = "right"
)

// seedOf returns the seed of the explorations.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(seedVariable)
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	return seed
}

// budgetOf returns how long each exploration of what is right may begin new runs. Zero means no limit.
func budgetOf(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(budgetVariable)
	if text == "" {
		return 0
	}
	budget, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", budgetVariable, err)
	}
	return budget
}

// kindsOf returns the kinds of faults of the explorations of what is right, or none for all kinds.
func kindsOf(t *testing.T) (kinds []faults.Kind) {
	t.Helper()
	text := os.Getenv(onlyVariable)
	if text == "" {
		return nil
	}
	for _, name := range strings.Split(text, ",") {
		parsed, err := faults.ParseKinds(name)
		if err != nil {
			t.Fatalf("%s: %v", onlyVariable, err)
		}
		kinds = append(kinds, parsed...)
	}
	return kinds
}

// An exploration finds the mistake of each wrong operator, and nothing in its right twin.
func TestExplore(t *testing.T) {
	var found detections
	if os.Getenv(modeVariable) == modeAll {
		t.Cleanup(func() { t.Log("\n" + found.table()) })
	}
	explorePairs(t, twins(), "keeps progress in memory only", found.add, requireNothing)
}

// explorePairs explores both twins of each pair in parallel, by the kinds of faults that show the mistake. Only modeAll explores
// more than the pair with the name usual. An exploration of a wrong twin must find the mistake, and recordFound receives how.
// checkRight explores a right twin.
func explorePairs(t *testing.T, all []twin, usual string, recordFound func(detection), checkRight func(*testing.T, twin, engine.Settings)) {
	t.Helper()
	if testing.Short() || os.Getenv(modeVariable) == modeRight {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel() // an exploration mostly waits
	seed := seedOf(t)
	cluster := yaretest.Shared(t)
	yaretest.Define[Site](t, cluster)
	for _, twin := range all {
		if os.Getenv(modeVariable) != modeAll && twin.name != usual {
			continue
		}
		options := engine.Settings{Config: cluster.Config(), Steps: twin.steps, Values: twin.fieldValues(), Seed: seed, Only: twin.kinds()}
		t.Run(twin.name+"/wrong", func(t *testing.T) {
			t.Parallel()
			recordFound(requireFound(t, twin, options))
		})
		t.Run(twin.name+"/right", func(t *testing.T) {
			t.Parallel()
			checkRight(t, twin, options)
		})
	}
}

// requireNothing fails t if an exploration finds something in a right twin.
func requireNothing(t *testing.T, twin twin, o engine.Settings) {
	t.Helper()
	requireNotFound(t, engine.Parts("twin", twin.right), o)
}

// forgetDetection is for tests that publish no table of what was found.
func forgetDetection(detection) {}

// kinds returns the kinds of faults that show the mistake.
func (t twin) kinds() []faults.Kind {
	if len(t.finds) == 0 {
		return []faults.Kind{faults.Transition}
	}
	return t.finds
}

// fieldValues returns the values of the fields of a twin. The name of a page stays, because most right twins make the page of
// another name and keep the former one: the twin "leaks a child on rename" has a mistake of its own for that.
func (t twin) fieldValues() map[string][]any {
	all := map[string][]any{"spec.page": nil}
	maps.Copy(all, t.values)
	return all
}

// detection is how an exploration has found the mistake of a twin.
type detection struct {
	twin twin
	// shown is the kind of the fault, or what else showed the mistake.
	shown string
	seed  uint64
	runs  int
	took  time.Duration
	found finding.Finding
}

// requireFound fails t unless an exploration of the wrong operator finds the mistake. The exploration
// ends with its first finding.
func requireFound(t *testing.T, twin twin, o engine.Settings) detection {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	d := detection{twin: twin, seed: o.Seed, runs: 1, shown: "no fault"}
	o.Progress = func(p engine.Progress) {
		if p.Findings > 0 && d.took == 0 {
			d.took = time.Since(began)
			cancel()
		}
	}
	record, err := engine.Explore(ctx, engine.Parts("twin", twin.wrong), o)
	switch {
	case twin.verdict == finding.Busy:
		if !errors.Is(err, engine.ErrNoReference) {
			t.Fatalf("the operator comes to rest: %v", err)
		}
		d.took = time.Since(began)
		t.Logf("seed %d: it does not come to rest, after %s: %v", o.Seed, d.took.Round(time.Second), err)
		return d
	case len(record.Findings) == 0:
		c := record.Coverage
		t.Fatalf("%d runs in %s found nothing: %v. Never happened: %v. Not applicable: %v. Not reached: %v", c.Runs, time.Since(began).Round(time.Second), err, c.NeverHappened, c.NotApplicable, c.NotReached)
	}
	found := record.Findings[0]
	d.found = found
	d.runs, d.shown = record.Coverage.Runs, "another value"
	for _, f := range found.Schedule.Faults {
		d.shown = string(f.Kind)
	}
	t.Logf("seed %d: %s after %s, in %d runs: %s", o.Seed, found.Verdict, d.took.Round(time.Second), d.runs, report.Summary(found))
	if found.Verdict != twin.verdict {
		t.Errorf("the verdict is %s, want %s", found.Verdict, twin.verdict)
	}
	return d
}

// requireSeenAgain fails t unless a replay of what was found in the wrong operator shows it again.
func requireSeenAgain(t *testing.T, twin twin, o engine.Settings, d detection) {
	t.Helper()
	again, err := engine.Replay(t.Context(), engine.Parts("twin", twin.wrong), o, d.found, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seen again in %d of %d replays", again.Seen, again.Tries)
	if again.Seen == 0 {
		t.Errorf("no replay shows %s", report.Summary(d.found))
	}
}

// requireNotFound fails t if an exploration finds something in an operator that is right, or is not
// complete.
func requireNotFound(t *testing.T, operator engine.Launcher, o engine.Settings) finding.Record {
	t.Helper()
	record, err := engine.Explore(t.Context(), operator, o)
	if err != nil {
		t.Fatal(err)
	}
	c := record.Coverage
	findings, warnings := count(record)
	t.Logf("%s: seed %d, runs %d, findings %d, warnings %d, seconds %.0f, complete %t", t.Name(), o.Seed, c.Runs, findings, warnings, c.Took.Seconds(), c.IsComplete)
	for _, found := range record.Findings {
		fail := t.Errorf
		if found.Verdict.IsWarning() {
			fail = t.Logf
		}
		fail("%s: %s", found.Verdict, report.Summary(found))
	}
	for _, missed := range c.NotReached {
		t.Logf("did not happen: %s", missed)
	}
	if !c.IsComplete && o.Budget == 0 {
		t.Error("the exploration is not complete")
	}
	return record
}

// count returns how many findings of a record fail the exploration, and how many warn.
func count(r finding.Record) (findings, warnings int) {
	for _, f := range r.Findings {
		if f.Verdict.IsWarning() {
			warnings++
		} else {
			findings++
		}
	}
	return findings, warnings
}

// detections are how explorations have found the mistakes of twins.
type detections struct {
	mu  sync.Mutex
	all []detection
}

func (all *detections) add(d detection) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.all = append(all.all, d)
}

// table returns the table of docs/reliability.md, in the order of the twins.
func (all *detections) table() string {
	all.mu.Lock()
	defer all.mu.Unlock()
	var b strings.Builder
	b.WriteString("| mistake | published as | shown by | verdict | seed | runs | seconds |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, twin := range twins() {
		for _, d := range all.all {
			if d.twin.name == twin.name {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %d | %.0f |\n",
					twin.name, strings.Join(links(twin.published), ", "), d.shown, twin.verdict, d.seed, d.runs, d.took.Seconds())
			}
		}
	}
	return b.String()
}

// links returns issues as links in Markdown.
func links(issues []string) (all []string) {
	for _, issue := range issues {
		all = append(all, fmt.Sprintf("[%s](https://github.com/%s)", issue, strings.Replace(issue, "#", "/issues/", 1)))
	}
	return all
}
