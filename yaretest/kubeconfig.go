package yaretest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/yare-go/yare/kube"
)

// access is the content of a kubeconfig.
type access struct {
	server      string
	ca          []byte
	user, token string
	namespace   string
}

// writeKubeconfig writes a kubeconfig file that is removed after t, and returns its path.
func writeKubeconfig(t testing.TB, a access) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	type object = map[string]any
	content, err := kube.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "yare",
		"clusters": []any{object{"name": "yare", "cluster": object{"server": a.server, "certificate-authority-data": a.ca}}},
		"users":    []any{object{"name": a.user, "user": object{"token": a.token}}},
		"contexts": []any{object{"name": "yare", "context": object{"cluster": "yare", "user": a.user, "namespace": a.namespace}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
