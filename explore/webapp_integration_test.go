package explore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/yare-go/yare/explore"
)

// What goes beyond the promises of an API server does not harm an operator that uses yare: repeated events, and
// objects of its kind that the operator cannot decode.
func TestBeyondTheContract(t *testing.T) {
	t.Parallel()
	coverage := explore.Run(t, explore.Binary{Path: "../examples/webapp"}, explore.Settings{Only: []string{"watch-twice", "unreadable"}})
	for _, k := range []string{"watch-twice", "unreadable"} {
		if count := coverage.Kinds[k]; count.Total == 0 || count.Done < count.Total {
			t.Errorf("runs with %s: %+v", k, count)
		}
	}
}

// The WebApp example passes what its exploration runs within a bounded time.
func TestExploreWebApp(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	coverage := explore.Run(t, explore.Binary{Path: "../examples/webapp", Cover: true}, explore.Settings{Budget: 45 * time.Second})
	if coverage.Points.Total == 0 || coverage.Kinds["crash"].Total == 0 {
		t.Errorf("the exploration has planned no run with a crash: %+v", coverage)
	}
	if count := coverage.Statements["github.com/yare-go/yare/examples/webapp"]; count.Done == 0 || count.Total < count.Done {
		t.Errorf("the statements of the example that have run are %+v, of all packages %v", count, coverage.Statements)
	}
}

// A sample whose kind has no CustomResourceDefinition ended the search for values, so that the fields of the samples
// after it were never changed.
func TestSamplesOfBuiltInKindsBesideOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	app, err := os.ReadFile("../examples/webapp/sample.yaml")
	if err != nil {
		t.Fatal(err)
	}
	samples := filepath.Join(t.TempDir(), "samples.yaml")
	settings := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n---\n"
	if err := os.WriteFile(samples, append([]byte(settings), app...), 0o600); err != nil {
		t.Fatal(err)
	}
	coverage := explore.Run(t, explore.Binary{Path: "../examples/webapp"},
		explore.Settings{SampleFile: samples, Only: []string{"transition"}, Budget: time.Minute})
	if coverage.Fields.Done == 0 || coverage.Transitions.Total == 0 {
		t.Errorf("fields that had another value: %+v, transitions: %+v", coverage.Fields, coverage.Transitions)
	}
}
