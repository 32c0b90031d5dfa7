package twins

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/yaretest"
)

// example is an example that is explored as a program.
type example struct {
	name string
	// sample is the file of the samples, if the folder of the example has none that fits.
	sample string
	// values are values of fields without a value suggested by the schema, or of fields that keep their
	// value.
	values map[string][]any
	// hasConversions is true if the example converts its objects. Then it has a cluster of its own, because the faults of
	// conversions end the watches of all other explorations.
	hasConversions bool
}

// examples returns all examples.
func examples() []example {
	return []example{
		{name: "book", values: map[string][]any{"spec.title": {"Typee"}}},
		{
			name: "cronjob", sample: "testdata/cronjob.yaml", hasConversions: true,
			values: map[string][]any{
				"spec.schedule": {"@yearly", "61 0 1 1 *"}, // the latter is no valid schedule
				// The template goes into Jobs only, and no Job starts.
				"spec.jobTemplate": nil,
			},
		},
		{name: "echo"},
		{name: "member", values: map[string][]any{"spec.memberOf": {"green", nil}}},
		{name: "myservice", values: map[string][]any{"spec.image": {"nginx:1.27", "not an image"}}},
		{name: "webapp", values: map[string][]any{"spec.image": {"nginx:1.28", "not an image"}}},
	}
}

// An exploration with all default kinds of faults finds nothing in a right twin and in an example.
func TestExploreRight(t *testing.T) {
	if os.Getenv(modeVariable) != modeRight {
		t.Skipf("it takes half an hour or more: set %s=%s", modeVariable, modeRight)
	}
	seed, budget, only := seedOf(t), budgetOf(t), kindsOf(t)
	cluster := yaretest.Shared(t)
	yaretest.Define[Site](t, cluster)
	var total sum
	t.Cleanup(func() { t.Logf("seed %d: %s", seed, &total) })
	for _, twin := range slices.Concat(twins(), usersTwins(), webhookTwins(), []twin{leadership()}) {
		t.Run(twin.name, func(t *testing.T) {
			t.Parallel()
			options := engine.Settings{Config: cluster.Config(), Steps: twin.steps, Values: twin.fieldValues(), Seed: seed, Budget: budget, Only: only}
			total.add(requireNotFound(t, engine.Parts("twin", twin.right), options))
		})
	}
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			cluster, folder := cluster, "../../../examples/"+e.name
			if e.hasConversions {
				cluster = yaretest.New(t)
			}
			binary := engine.Binary{Path: yaretest.Build(t, folder)}
			crds, err := binary.CRDs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.Install(t.Context(), cluster.Config(), crds); err != nil {
				t.Fatal(err)
			}
			if e.sample == "" {
				e.sample = folder + "/sample.yaml"
			}
			samples, err := engine.ReadSamples(e.sample)
			if err != nil {
				t.Fatal(err)
			}
			options := engine.Settings{Config: cluster.Config(), Samples: samples, Values: e.values, Seed: seed, Budget: budget, Only: only}
			total.add(requireNotFound(t, binary, options))
		})
	}
}

// sum is what explorations have run and found together.
type sum struct {
	mu                                     sync.Mutex
	explorations, runs, findings, warnings int
	took                                   time.Duration
}

func (s *sum) add(r finding.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.explorations++
	s.runs += r.Coverage.Runs
	findings, warnings := count(r)
	s.findings += findings
	s.warnings += warnings
	s.took += r.Coverage.Took
}

func (s *sum) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("explorations %d, runs %d, findings %d, warnings %d, seconds %.0f", s.explorations, s.runs, s.findings, s.warnings, s.took.Seconds())
}
