package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube"
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

// TestReadsAreRecorded checks that the versions of workloads that a program has received are recorded, and that the hash of
// an answer changes with a version in it.
func TestReadsAreRecorded(t *testing.T) {
	t.Parallel()
	version := "7"
	recorder := &proxy.ReadRecorder{}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"items":[{"metadata":{"name":"web","resourceVersion":%q}}]}`, version)
	}))
	t.Cleanup(upstream.Close)
	p, err := proxy.New(proxy.Options{Target: &kube.Config{Host: upstream.URL}, Hooks: []proxy.Hook{recorder}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	session, err := p.NewSession("program")
	if err != nil {
		t.Fatal(err)
	}
	transport, err := kube.NewRoundTripper(session.Config())
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, session.Config().Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	read("/apis/apps/v1/namespaces/a/deployments")
	read("/apis/apps/v1/namespaces/a/deployments")
	version = "8"
	read("/apis/apps/v1/namespaces/a/deployments")
	read("/api/v1/namespaces/a/configmaps")
	requests := p.Requests()
	if requests[0].AnswerHash == 0 || requests[0].AnswerHash != requests[1].AnswerHash || requests[1].AnswerHash == requests[2].AnswerHash {
		t.Errorf("the hashes are %d, %d and %d", requests[0].AnswerHash, requests[1].AnswerHash, requests[2].AnswerHash)
	}
	var versions []string
	for _, o := range recorder.Observations() {
		versions = append(versions, o.Session+" "+o.Resource+" "+o.Name+" "+o.ResourceVersion)
	}
	want := []string{"program deployments.apps web 7", "program deployments.apps web 7", "program deployments.apps web 8"}
	if !slices.Equal(versions, want) {
		t.Errorf("the observations are %q, want %q", versions, want)
	}
}
