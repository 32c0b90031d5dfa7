// Package serverminor finds out which minor version of Kubernetes a server has, for tests of what differs between them.
package serverminor

import (
	"cmp"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// Of returns the minor version of the server of a cluster, such as 36 for Kubernetes 1.36.
func Of(t testing.TB, cluster *yaretest.Cluster) int {
	t.Helper()
	return read(t, cluster).Minor
}

// OfAPIs returns the minor version whose APIs the server of a cluster serves. It is that of the server, unless the server
// emulates another one.
func OfAPIs(t testing.TB, cluster *yaretest.Cluster) int {
	t.Helper()
	v := read(t, cluster)
	return cmp.Or(v.EmulationMinor, v.Minor)
}

// version is what a server says of its version.
type version struct {
	Minor          int `json:"minor,string"`
	EmulationMinor int `json:"emulationMinor,string"`
}

func read(t testing.TB, cluster *yaretest.Cluster) (v version) {
	t.Helper()
	if err := kube.Unmarshal([]byte(cluster.Kubectl(t, "", "get", "--raw", "/version")), &v); err != nil {
		t.Fatalf("the version of the server: %v", err)
	}
	return v
}
