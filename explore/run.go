package explore

import (
	"context"
	"strings"
	"testing"

	"github.com/yare-go/yare/explore/internal/report"
	"github.com/yare-go/yare/yaretest"
)

// Run explores an operator on the cluster of [yaretest.Shared], or on the cluster of Settings.OwnCluster. A finding
// fails t. A state that was only late is logged. Run applies the admission policies of the operator before the first
// run, and removes them after t. On the cluster of [yaretest.Shared] they concern only the namespaces of the runs, and
// objects outside of namespaces. Run returns the coverage.
func Run(t testing.TB, o Operator, settings Settings) *Coverage {
	t.Helper()
	e, err := settings.newExploration()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.open(t.Context(), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if e.cluster == nil { // other tests use the cluster too
		e.cluster = yaretest.Shared(t)
		if err := e.narrowPolicies(); err != nil {
			t.Fatal(err)
		}
	}
	e.settings.Config = e.cluster.Config()
	t.Cleanup(func() {
		if err := e.removePolicies(context.WithoutCancel(t.Context())); err != nil {
			t.Logf("policies are left behind: %v", err)
		}
	})
	if err := e.install(t.Context(), func(text string) { t.Log(text) }); err != nil {
		t.Fatal(err)
	}
	record, failure := e.run(t.Context())
	var text strings.Builder
	if err := e.writeReports(&text, record); err != nil {
		t.Error(err)
	}
	t.Log("\n" + text.String())
	for _, f := range record.Findings {
		if !f.IsWarning() {
			t.Errorf("%s: %s", f.Verdict, report.Summary(f))
		}
	}
	if failure != nil {
		t.Fatalf("explore %s: %v", e.operator, failure)
	}
	return newCoverage(record.Coverage)
}
