package layout

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/yare-go/yare/controlplane/internal/pki"
)

// The names of the files in the folder that components read.
const (
	caFile             = "ca.crt"
	serverCertFile     = "apiserver.crt"
	serverKeyFile      = "apiserver.key"
	kubeletCertFile    = "kubelet.crt"
	kubeletKeyFile     = "kubelet.key"
	frontProxyCAFile   = "front-proxy-ca.crt"
	frontProxyCertFile = "front-proxy.crt"
	frontProxyKeyFile  = "front-proxy.key"
	signingKeyFile     = "service-account.key"
	signingPublicFile  = "service-account.pub"
	authenticationFile = "authentication.yaml"
)

// masters is the group that may do everything, whatever the rules of RBAC are. The components are in
// it too: otherwise they would have to wait until the API server has made their roles.
const masters = "system:masters"

// authentication allows requests without credentials only for health checks.
const authentication = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /readyz
  - path: /healthz
`

// credentials are the credentials of a client.
type credentials struct {
	ca   []byte
	pair pki.Pair
}

// writeCredentials fills the folder with all certificates, keys and kubeconfigs, and
// returns the credentials of the administrator.
func writeCredentials(folder *Folder, server string, serviceAddress net.IP, now time.Time) (credentials, error) {
	ca, err := pki.NewAuthority("yare", now)
	if err != nil {
		return credentials{}, err
	}
	frontProxyCA, err := pki.NewAuthority("yare-front-proxy", now)
	if err != nil {
		return credentials{}, err
	}
	loopback := net.IPv4(127, 0, 0, 1)
	serving, err := ca.Server("kube-apiserver",
		[]string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
		[]net.IP{loopback, serviceAddress}, now)
	if err != nil {
		return credentials{}, err
	}
	kubeletServing, err := ca.Server("kubelet", []string{"localhost"}, []net.IP{loopback}, now)
	if err != nil {
		return credentials{}, err
	}
	frontProxy, err := frontProxyCA.Client("front-proxy", nil, now)
	if err != nil {
		return credentials{}, err
	}
	signing, signingPublic, err := pki.NewSigningKey()
	if err != nil {
		return credentials{}, err
	}
	files := map[string][]byte{
		caFile:             ca.PEM,
		serverCertFile:     serving.Certificate,
		serverKeyFile:      serving.Key,
		kubeletCertFile:    kubeletServing.Certificate,
		kubeletKeyFile:     kubeletServing.Key,
		frontProxyCAFile:   frontProxyCA.PEM,
		frontProxyCertFile: frontProxy.Certificate,
		frontProxyKeyFile:  frontProxy.Key,
		signingKeyFile:     signing,
		signingPublicFile:  signingPublic,
		authenticationFile: []byte(authentication),
	}
	for component, user := range map[string]string{
		ControllerManager: "system:kube-controller-manager",
		Scheduler:         "system:kube-scheduler",
		Kubelet:           "yare:simulated-kubelet",
	} {
		pair, err := ca.Client(user, []string{masters}, now)
		if err != nil {
			return credentials{}, err
		}
		files[kubeconfigFile(component)] = kubeconfig(server, credentials{ca.PEM, pair})
	}
	for name, content := range files {
		if err := os.WriteFile(folder.Join(name), content, 0o600); err != nil {
			return credentials{}, fmt.Errorf("write the credentials: %w", err)
		}
	}
	admin, err := ca.Client("kubernetes-admin", []string{masters}, now)
	return credentials{ca.PEM, admin}, err
}

func kubeconfigFile(component string) string { return component + ".kubeconfig" }

// kubeconfig returns a kubeconfig file with one context.
func kubeconfig(server string, c credentials) []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: yare
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: yare
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: yare
  context:
    cluster: yare
    user: yare
    namespace: default
current-context: yare
`, server, encode(c.ca), encode(c.pair.Certificate), encode(c.pair.Key))
}
