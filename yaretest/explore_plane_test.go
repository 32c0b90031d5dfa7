package yaretest_test

import (
	"testing"

	"github.com/yare-go/yare/yaretest"
)

// An exploration does not stop a control plane that other tests use.
func TestPlaneOfOthers(t *testing.T) {
	t.Parallel()
	shared := yaretest.Start(t)
	for name, test := range map[string]struct {
		cluster *yaretest.Cluster
		want    string
	}{
		"none":   {nil, "the cluster of yaretest.Plane is nil"},
		"shared": {shared, "give one that yaretest.New has started"},
		"narrow": {shared.InNamespaces("default"), "give one that yaretest.New has started"},
	} {
		record(t, name, func(t testing.TB) {
			yaretest.Explore(t, yaretest.Binary{Path: "."}, yaretest.Plane(test.cluster))
		}).requireFailure(t, test.want)
	}
}
