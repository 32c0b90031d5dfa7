// Package serverminor finds out which minor version of Kubernetes a server has, for tests of what differs between them.
package serverminor

import (
	"strconv"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// Of returns the minor version of the server of a cluster, such as 36 for Kubernetes 1.36.
func Of(t testing.TB, cluster *yaretest.Cluster) int {
	t.Helper()
	var version struct {
		Minor string `json:"minor"`
	}
	if err := kube.Unmarshal([]byte(cluster.Kubectl(t, "", "get", "--raw", "/version")), &version); err != nil {
		t.Fatal(err)
	}
	minor, err := strconv.Atoi(version.Minor)
	if err != nil {
		t.Fatalf("the minor version of the server: %v", err)
	}
	return minor
}
