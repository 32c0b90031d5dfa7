package explore

import (
	"slices"
	"testing"

	"github.com/yare-go/yare/internal/explore/faults"
	"github.com/yare-go/yare/internal/explore/schedule"
)

// What a program writes outside of its namespace is in the coverage, once for each kind of write.
func TestWritesOutsideAreInTheCoverage(t *testing.T) {
	t.Parallel()
	refused := faults.Request{Point: schedule.Point{Verb: "create", Resource: "configmaps", Name: "a"}, Namespace: "kube-system", OutOfBounds: true}
	clustered := faults.Request{Point: schedule.Point{Verb: "patch", Resource: "nodes", Subresource: "status", Name: "n"}, ClusterScoped: true}
	own := faults.Request{Point: schedule.Point{Verb: "create", Resource: "configmaps", Name: "a"}, Namespace: "run"}
	e := &explorer{}
	e.recordOutside([]faults.Request{refused, own, clustered})
	e.recordOutside([]faults.Request{clustered, refused})
	if got, want := e.coverage.OutOfBounds, []string{"create configmaps a in kube-system"}; !slices.Equal(got, want) {
		t.Errorf("the writes in other namespaces are %q, want %q", got, want)
	}
	if got, want := e.coverage.ClusterScoped, []string{"patch nodes/status n"}; !slices.Equal(got, want) {
		t.Errorf("the writes in no namespace are %q, want %q", got, want)
	}
}
