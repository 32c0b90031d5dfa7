package proxy_test

import (
	"testing"

	"github.com/yare-go/yare/internal/proxy"
)

// TestNamespacesAreNarrowed checks that a program sees no namespaces but its own when the program lists
// namespaces by a selector.
func TestNamespacesAreNarrowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ selector, want string }{
		{"", "metadata.name=run"},
		{"metadata.name!=kube-system,status.phase=Active", "metadata.name!=kube-system,status.phase=Active,metadata.name=run"},
		{"metadata.name=other", "metadata.name=other"},
		{"metadata.name==other", "metadata.name==other"},
	} {
		if got := proxy.NarrowNames(c.selector, "run"); got != c.want {
			t.Errorf("the selector %q becomes %q, want %q", c.selector, got, c.want)
		}
	}
}

// TestAnswersAreJSON checks that the server is asked for JSON only, and metadata stays metadata.
func TestAnswersAreJSON(t *testing.T) {
	t.Parallel()
	const protobuf, partial = "application/vnd.kubernetes.protobuf", ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	for _, c := range []struct{ accept, want string }{
		{"", "application/json"},
		{"*/*", "*/*"},
		{protobuf, "application/json"},
		{protobuf + ",application/json", "application/json"},
		{"application/cbor, application/json", "application/json"},
		{"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/json"},
		{protobuf + partial + ",application/json" + partial + ",application/json", "application/json" + partial + ",application/json"},
		{protobuf + partial, "application/json" + partial},
	} {
		if got := proxy.AcceptJSON(c.accept); got != c.want {
			t.Errorf("Accept %q becomes %q, want %q", c.accept, got, c.want)
		}
	}
}
