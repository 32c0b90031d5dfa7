package explore_test

import (
	"strings"
	"testing"

	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/yaretest"
)

// An exploration does not stop a control plane that other tests use.
func TestPlaneOfOthers(t *testing.T) {
	t.Parallel()
	shared := yaretest.Shared(t)
	for name, test := range map[string]struct {
		cluster *yaretest.Cluster
		want    string
	}{
		"shared": {shared, "give one that yaretest.New has started"},
		"narrow": {shared.InNamespaces("default"), "give one that yaretest.New has started"},
	} {
		got := failuresOf(t, func(t testing.TB) {
			explore.Run(t, explore.Binary{Path: "."}, explore.Settings{OwnCluster: test.cluster})
		})
		if len(got) != 1 || !strings.Contains(got[0], test.want) {
			t.Errorf("%s: the failures are %q, want %q", name, got, test.want)
		}
	}
}
