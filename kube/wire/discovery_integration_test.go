package wire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// DiscoverAll finds the resources that kubectl finds.
func TestDiscoverAll(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	resources, err := wire.DiscoverAll(t.Context(), cluster.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	// Other tests define kinds and remove them meanwhile.
	isOfTests := func(name string) bool {
		return strings.HasSuffix(name, ".example.com") || strings.HasSuffix(name, ".yare.dev")
	}
	var found []string
	for _, r := range resources {
		found = append(found, r.String())
	}
	known := strings.Fields(cluster.Kubectl(t, "", "api-resources", "-o", "name"))
	for _, names := range []*[]string{&found, &known} {
		*names = slices.DeleteFunc(*names, isOfTests)
		slices.Sort(*names)
	}
	if diff := cmp.Diff(known, found); diff != "" || len(found) < 30 {
		t.Errorf("kubectl (-) and DiscoverAll (+) differ:\n%s", diff)
	}
}
