package manifests

import (
	"strings"
	"testing"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube/wire"
)

// A kind that the cluster has under another plural is an error, which names the field that keeps the plural.
func TestCheckPlurals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		group, kind, plural string
		want                string
	}{
		"nothing in the cluster": {"other.example.com", "Robot", "robots", ""},
		"same plural":            {"example.com", "Redis", "redis", ""},
		"other kind":             {"example.com", "Robot", "redises", ""},
		"other plural":           {"example.com", "Redis", "redises", `under the plural redises, with 1 objects, which the program would change to redis: no server allows that, so set Plural to "redises"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fakeserver.New()
			server.Store(DefinitionResource(), "", test.plural+"."+test.group, map[string]any{"spec": map[string]any{
				"group": test.group, "names": map[string]any{"kind": test.kind, "plural": test.plural},
				"versions": []any{map[string]any{"name": "v1", "served": true}, map[string]any{"name": "v2"}},
			}})
			objects := wire.Resource{Plural: test.plural}
			objects.Group, objects.Version, objects.Kind = test.group, "v1", test.kind
			server.Store(objects, "default", "cache", map[string]any{})
			definition := &crd.CustomResourceDefinition{Spec: crd.Spec{Group: "example.com", Names: crd.Names{Kind: "Redis", Plural: "redis"}}}
			err := CheckPlurals(t.Context(), server.Client(), []*crd.CustomResourceDefinition{definition})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}
