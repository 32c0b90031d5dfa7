package yaretest

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"yare": {Server: a.server, CertificateAuthorityData: a.ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{a.user: {Token: a.token}},
		Contexts:       map[string]*clientcmdapi.Context{"yare": {Cluster: "yare", AuthInfo: a.user, Namespace: a.namespace}},
		CurrentContext: "yare",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
