package engine

import (
	"slices"
	"testing"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy"
)

// What a program writes outside of its namespace is in the coverage, once for each kind of write.
func TestWritesOutsideAreInTheCoverage(t *testing.T) {
	t.Parallel()
	refused := proxy.RequestRecord{Point: proxy.Point{Verb: "create", Resource: "configmaps", Name: "a"}, Namespace: "kube-system", OutOfBounds: true}
	clustered := proxy.RequestRecord{Point: proxy.Point{Verb: "patch", Resource: "nodes", Subresource: "status", Name: "n"}, ClusterScoped: true}
	own := proxy.RequestRecord{Point: proxy.Point{Verb: "create", Resource: "configmaps", Name: "a"}, Namespace: "run"}
	r := newResults("operator", 0, nil)
	r.addOutsideWrites([]proxy.RequestRecord{refused, own, clustered})
	r.addOutsideWrites([]proxy.RequestRecord{clustered, refused})
	if got, want := r.coverage.OutOfBounds, []string{"create configmaps a in kube-system"}; !slices.Equal(got, want) {
		t.Errorf("the writes in other namespaces are %q, want %q", got, want)
	}
	if got, want := r.coverage.ClusterScoped, []string{"patch nodes/status n"}; !slices.Equal(got, want) {
		t.Errorf("the writes in no namespace are %q, want %q", got, want)
	}
}

// Findings of one check are the same finding, whatever version shows them.
func TestKnownFindings(t *testing.T) {
	t.Parallel()
	r := newResults("operator", 0, nil)
	for _, f := range []finding.Finding{
		{Verdict: finding.CheckFailed, Differences: []finding.Difference{{Object: "configmaps/a", Check: "few", Reason: "at 0.1 s"}}},
		{Verdict: finding.Wrong, Differences: []finding.Difference{{Object: "configmaps/a", Path: "data"}}},
	} {
		r.addFinding(f)
	}
	for _, test := range []struct {
		verdict    finding.Verdict
		difference finding.Difference
		want       bool
	}{
		{finding.CheckFailed, finding.Difference{Object: "configmaps/b", Check: "few", Reason: "at 0.2 s"}, true},
		{finding.CheckFailed, finding.Difference{Object: "configmaps/a", Check: "many", Reason: "at 0.1 s"}, false},
		{finding.Wrong, finding.Difference{Object: "configmaps/a", Path: "data", Got: "1"}, true},
		{finding.Wrong, finding.Difference{Object: "configmaps/a", Path: "data.x"}, false},
	} {
		if got := r.isKnown(test.verdict, []finding.Difference{test.difference}); got != test.want {
			t.Errorf("%s %s: known is %t, want %t", test.verdict, test.difference, got, test.want)
		}
	}
}
