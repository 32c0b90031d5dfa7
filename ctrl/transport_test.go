package ctrl

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/kube/wire"
)

func TestParseRequest(t *testing.T) {
	t.Parallel()
	type found struct {
		Verb                                     wire.Verb
		Group, Version, Plural                   string
		Namespace, Name, Subresource, UID, Query string
		Metadata                                 bool
	}
	for line, want := range map[string]found{
		"GET /apis":                                      {Verb: wire.VerbGet},
		"GET /api/v1":                                    {Verb: wire.VerbGet, Version: "v1"},
		"GET /apis/apps/v1":                              {Verb: wire.VerbGet, Group: "apps", Version: "v1"},
		"GET /api/v1/namespaces":                         {Verb: wire.VerbList, Version: "v1", Plural: "namespaces"},
		"GET /api/v1/namespaces/shop":                    {Verb: wire.VerbGet, Version: "v1", Plural: "namespaces", Name: "shop"},
		"PUT /api/v1/namespaces/shop/finalize":           {Verb: wire.VerbUpdate, Version: "v1", Plural: "namespaces", Name: "shop", Subresource: "finalize"},
		"GET /api/v1/namespaces/shop/pods?watch=true":    {Verb: wire.VerbWatch, Version: "v1", Plural: "pods", Namespace: "shop"},
		"GET /api/v1/namespaces/shop/pods?limit=5":       {Verb: wire.VerbList, Version: "v1", Plural: "pods", Namespace: "shop", Query: "limit=5"},
		"GET /apis/x.dev/v1/namespaces/status/ships/a":   {Verb: wire.VerbGet, Group: "x.dev", Version: "v1", Plural: "ships", Namespace: "status", Name: "a"},
		"POST /api/v1/namespaces/shop/pods/web/eviction": {Verb: wire.VerbCreate, Version: "v1", Plural: "pods", Namespace: "shop", Name: "web", Subresource: "eviction"},
		"DELETE /apis/apps/v1/namespaces/shop/deployments": {
			Verb: wire.VerbDeleteCollection, Group: "apps", Version: "v1", Plural: "deployments", Namespace: "shop",
		},
		`DELETE /api/v1/nodes/n {"preconditions":{"uid":"u"},"metadata":{"uid":"other"}}`: {
			Verb: wire.VerbDelete, Version: "v1", Plural: "nodes", Name: "n", UID: "u",
		},
		`PATCH /api/v1/nodes/n/status {"metadata":{"uid":"u"}}`: {
			Verb: wire.VerbPatch, Version: "v1", Plural: "nodes", Name: "n", Subresource: "status", UID: "u",
		},
		`PATCH /api/v1/nodes/n [{"op":"remove"}]`: {Verb: wire.VerbPatch, Version: "v1", Plural: "nodes", Name: "n"},
		"METADATA /api/v1/nodes/n":                {Verb: wire.VerbGet, Version: "v1", Plural: "nodes", Name: "n", Metadata: true},
	} {
		parts := strings.SplitN(line, " ", 3)
		isMetadata := parts[0] == "METADATA"
		if isMetadata {
			parts[0] = http.MethodGet
		}
		h := httptest.NewRequestWithContext(t.Context(), parts[0], parts[1], strings.NewReader(strings.Join(parts[2:], "")))
		if isMetadata {
			h.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
		}
		r, err := parseRequest(h)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var got found
		got.Verb, got.Group, got.Version, got.Plural = r.Verb, r.Resource.Group, r.Resource.Version, r.Resource.Plural
		got.Namespace, got.Name, got.Subresource = r.Namespace, r.Name, r.Subresource
		got.UID, got.Query, got.Metadata = string(r.Preconditions.UID), r.Query.Encode(), r.Representation == wire.MetadataOnly
		if diff := cmp.Diff(want, got); diff != "" || !r.Live {
			t.Errorf("%s: %s", line, diff)
		}
	}
	for _, line := range []string{"GET /version", "GET /openapi/v3", "HEAD /api/v1/nodes", "GET /apis/apps"} {
		method, path, _ := strings.Cut(line, " ")
		h := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		if r, err := parseRequest(h); err == nil {
			t.Errorf("%s is %+v", line, r)
		}
	}
}
