package explore

import (
	"slices"
	"testing"

	"github.com/yare-go/yare/internal/proxy"
)

// What a program writes outside of its namespace is in the coverage, once for each kind of write.
func TestWritesOutsideAreInTheCoverage(t *testing.T) {
	t.Parallel()
	refused := proxy.Request{Point: proxy.Point{Verb: "create", Resource: "configmaps", Name: "a"}, Namespace: "kube-system", OutOfBounds: true}
	clustered := proxy.Request{Point: proxy.Point{Verb: "patch", Resource: "nodes", Subresource: "status", Name: "n"}, ClusterScoped: true}
	own := proxy.Request{Point: proxy.Point{Verb: "create", Resource: "configmaps", Name: "a"}, Namespace: "run"}
	e := &explorer{}
	e.recordOutside([]proxy.Request{refused, own, clustered})
	e.recordOutside([]proxy.Request{clustered, refused})
	if got, want := e.coverage.OutOfBounds, []string{"create configmaps a in kube-system"}; !slices.Equal(got, want) {
		t.Errorf("the writes in other namespaces are %q, want %q", got, want)
	}
	if got, want := e.coverage.ClusterScoped, []string{"patch nodes/status n"}; !slices.Equal(got, want) {
		t.Errorf("the writes in no namespace are %q, want %q", got, want)
	}
}
