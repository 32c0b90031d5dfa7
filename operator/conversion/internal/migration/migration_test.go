package migration

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// nativeServer is an API server that serves StorageVersionMigrations in one version, or in none.
type nativeServer struct{ version, list string }

func (s nativeServer) Do(_ context.Context, r *wire.Request) (*wire.Response, error) {
	if r.Resource.Plural == "storageversionmigrations" && r.Resource.Version == s.version {
		return &wire.Response{Body: []byte(s.list)}, nil
	}
	err := wire.NewError(r)
	err.Code, err.Answer = http.StatusNotFound, metav1.Status{Reason: metav1.StatusReasonNotFound}
	return nil, err
}

// A migration of Kubernetes and this one would write each object twice, and both would set the stored versions.
func TestRefusalWhileAStorageVersionMigrationRuns(t *testing.T) {
	t.Parallel()
	r := wire.Resource{Plural: "robots"}
	r.Group, r.Version, r.Kind = "example.com", "v2", "Robot"
	item := func(group, plural, conditions string) string {
		return `{"items":[{"metadata":{"name":"m"},"spec":{"resource":{"group":"` + group + `","resource":"` + plural + `"}},"status":{"conditions":[` + conditions + `]}}]}`
	}
	const running, succeeded, failed = `{"type":"Running","status":"True"}`, `{"type":"Running","status":"False"},{"type":"Succeeded","status":"True"}`, `{"type":"Failed","status":"True"}`
	for name, test := range map[string]struct {
		server    nativeServer
		isRefused bool
	}{
		"not served":             {nativeServer{}, false},
		"none":                   {nativeServer{"v1", `{"items":[]}`}, false},
		"running":                {nativeServer{"v1", item("example.com", "robots", running)}, true},
		"running, v1beta1":       {nativeServer{"v1beta1", item("example.com", "robots", running)}, true},
		"running, v1alpha1":      {nativeServer{"v1alpha1", item("example.com", "robots", running)}, true},
		"not begun":              {nativeServer{"v1", item("example.com", "robots", "")}, true},
		"succeeded":              {nativeServer{"v1", item("example.com", "robots", succeeded)}, false},
		"failed":                 {nativeServer{"v1", item("example.com", "robots", failed)}, false},
		"of another kind":        {nativeServer{"v1", item("example.com", "ships", running)}, false},
		"of another group":       {nativeServer{"v1", item("example.org", "robots", running)}, false},
		"what cannot be decoded": {nativeServer{"v1", `{"items":{}}`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkNativeMigrations(t.Context(), kube.NewClientFromHandler(test.server), r)
			if (err != nil) != test.isRefused || err != nil && !strings.Contains(err.Error(), "StorageVersionMigration") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// definitionServer is an API server with one definition. It records the versions of each write.
type definitionServer struct {
	definition string
	written    *[]string
}

func (s definitionServer) Do(_ context.Context, r *wire.Request) (*wire.Response, error) {
	if r.Verb == wire.VerbPatch {
		*s.written = append(*s.written, string(r.Body))
	}
	return &wire.Response{Body: []byte(s.definition)}, nil
}

// The definition of a kind without an older version once came back with numbers that had gone through floating point.
func TestIntegersOfDefinitionsStayIntegers(t *testing.T) {
	t.Parallel()
	const schema = `"schema":{"openAPIV3Schema":{"type":"object","properties":{"serial":{"type":"integer","default":9007199254740993}}}}`
	var written []string
	server := definitionServer{`{"metadata":{"name":"robots.example.com"},"spec":{"versions":[{"name":"v1",` + schema + `},{"name":"v2",` + schema + `}]}}`, &written}
	r := wire.Resource{Plural: "robots"}
	r.Group, r.Version, r.Kind = "example.com", "v2", "Robot"
	_, err := changeVersions(t.Context(), kube.NewClientFromHandler(server), r, func(versions []any) []any { return withoutVersion(versions, "v1") })
	if err != nil {
		t.Fatal(err)
	}
	if len(written) != 1 || strings.Contains(written[0], `"v1"`) || !strings.Contains(written[0], `"default":9007199254740993`) {
		t.Errorf("the writes are %q", written)
	}
}

// The rate holds for writes that take no time, and an end does not wait for the next write.
func TestPacer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pacer{interval: time.Second / 20}
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		for range 41 {
			if err := p.wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("41 writes at 20 in a second took %s", took)
		}
		cancel()
		if err := p.wait(ctx); err == nil {
			t.Error("the wait has not ended with its context")
		}
	})
}
