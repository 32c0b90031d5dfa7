package yaretest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/yare-go/yare/kube"
)

// credentials are the content of a kubeconfig.
type credentials struct {
	server      string
	ca          []byte
	user, token string
	namespace   string
}

// writeKubeconfig writes a kubeconfig file that is removed after t, and returns its path.
func writeKubeconfig(t testing.TB, c credentials) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	type object = map[string]any
	content, err := kube.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "yare",
		"clusters": []any{object{"name": "yare", "cluster": object{"server": c.server, "certificate-authority-data": c.ca}}},
		"users":    []any{object{"name": c.user, "user": object{"token": c.token}}},
		"contexts": []any{object{"name": "yare", "context": object{"cluster": "yare", "user": c.user, "namespace": c.namespace}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
