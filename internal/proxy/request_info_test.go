package proxy_test

import (
	"net/http/httptest"
	"testing"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube/wire"
)

func TestParseRequestInfo(t *testing.T) {
	t.Parallel()
	type request = proxy.RequestInfo
	for _, c := range []struct {
		method, path string
		want         request
	}{
		{"GET", "/api/v1/pods", request{Verb: wire.VerbList, Resource: "pods"}},
		{"GET", "/api/v1/namespaces/a/pods?watch=true", request{Verb: wire.VerbWatch, Resource: "pods", Namespace: "a"}},
		{"GET", "/api/v1/namespaces/a/pods?watch=1", request{Verb: wire.VerbWatch, Resource: "pods", Namespace: "a"}},
		{"GET", "/api/v1/namespaces/a/pods/p/log", request{Verb: wire.VerbGet, Resource: "pods", Namespace: "a", Name: "p", Subresource: "log"}},
		{"POST", "/apis/apps/v1/namespaces/a/deployments", request{Verb: wire.VerbCreate, Resource: "deployments.apps", Namespace: "a"}},
		{"PUT", "/apis/apps/v1/namespaces/a/deployments/d", request{Verb: wire.VerbUpdate, Resource: "deployments.apps", Namespace: "a", Name: "d"}},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/d/status", request{Verb: wire.VerbPatch, Resource: "deployments.apps", Namespace: "a", Name: "d", Subresource: "status"}},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments/d", request{Verb: wire.VerbDelete, Resource: "deployments.apps", Namespace: "a", Name: "d"}},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments", request{Verb: wire.VerbDeleteCollection, Resource: "deployments.apps", Namespace: "a"}},
		{"GET", "/api/v1/namespaces/a", request{Verb: wire.VerbGet, Resource: "namespaces", Name: "a"}},
		{"PUT", "/api/v1/namespaces/a/finalize", request{Verb: wire.VerbUpdate, Resource: "namespaces", Name: "a", Subresource: "finalize"}},
		{"GET", "/apis/apps/v1", request{Verb: wire.VerbList}},
		{"GET", "/healthz", request{Verb: wire.VerbList}},
	} {
		if got := proxy.ParseRequestInfo(httptest.NewRequest(c.method, c.path, nil)); got != c.want {
			t.Errorf("%s %s is %+v, want %+v", c.method, c.path, got, c.want)
		}
	}
}
