package integration

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

const release = "v1.37.2"

func TestVersionIsThatOfARelease(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	var version struct {
		ClientVersion, ServerVersion struct{ GitVersion, Major, Minor, GitTreeState string }
	}
	if err := json.Unmarshal([]byte(cluster.Kubectl(t, "", "version", "-o", "json")), &version); err != nil {
		t.Fatal(err)
	}
	if c := version.ClientVersion; c.GitVersion != release || c.Major != "1" || c.Minor != "37" {
		t.Errorf("kubectl says it is %+v", c)
	}
	if s := version.ServerVersion; s.GitVersion != release || s.Major != "1" || s.Minor != "37" {
		t.Errorf("the server says it is %+v", s)
	}
}

// Who has no rights is refused, and who has some is refused the others.
func TestRBACIsOn(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	namespace := cluster.Namespace(t)
	account := cluster.ServiceAccount(t, namespace)
	client := account.Client(t)
	secrets, configMaps := kube.Namespaced[corev1.Secret](client, namespace), kube.Namespaced[corev1.ConfigMap](client, namespace)
	if _, err := secrets.List(t.Context()); !kube.IsForbidden(err) {
		t.Errorf("an account without rights lists Secrets: %v", err)
	}
	account.Allow(t, namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}})
	yaretest.Eventually(t, func() error {
		_, err := configMaps.List(t.Context())
		return err
	})
	if _, err := secrets.List(t.Context()); !kube.IsForbidden(err) {
		t.Errorf("an account that may list ConfigMaps lists Secrets: %v", err)
	}
	if _, err := kube.Everywhere[corev1.Node](client).List(t.Context()); !kube.IsForbidden(err) {
		t.Errorf("an account that may list ConfigMaps lists nodes: %v", err)
	}
}

// The API server gives a Pod its ServiceAccount and a token, and refuses one whose
// ServiceAccount does not exist.
func TestServiceAccountAdmissionIsOn(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	pods := kube.Namespaced[corev1.Pod](cluster.Client(t), cluster.Namespace(t))
	yaretest.Eventually(t, func() error { // The controller makes the account of a new namespace.
		_, err := pods.Create(t.Context(), newPod("a"))
		return err
	})
	p := get(t, pods, "a")
	if p.Spec.ServiceAccountName != "default" {
		t.Errorf("its ServiceAccount is %q", p.Spec.ServiceAccountName)
	}
	var volume string
	for _, v := range p.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ServiceAccountToken != nil {
				volume = v.Name
			}
		}
	}
	mounted := false
	for _, m := range p.Spec.Containers[0].VolumeMounts {
		mounted = mounted || m.Name == volume && m.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount"
	}
	if volume == "" || !mounted {
		t.Errorf("it has no token: volumes %+v, mounts %+v", p.Spec.Volumes, p.Spec.Containers[0].VolumeMounts)
	}
	nobody := newPod("b")
	nobody.Spec.ServiceAccountName = "nobody"
	if _, err := pods.Create(t.Context(), nobody); !kube.IsForbidden(err) {
		t.Errorf("a Pod of a ServiceAccount that does not exist: %v", err)
	}
}

// A Secret that asks for a token gets a token. The token lets the account in. Every namespace gets
// the certificate to check the server with.
func TestServiceAccountsHaveTokens(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	yaretest.WaitFor(t, kube.Namespaced[corev1.ServiceAccount](client, namespace), "default", func(*corev1.ServiceAccount) error { return nil })
	secrets := kube.Namespaced[corev1.Secret](client, namespace)
	create(t, secrets, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	})
	secret := yaretest.WaitFor(t, secrets, "token", func(s *corev1.Secret) error {
		if len(s.Data[corev1.ServiceAccountTokenKey]) == 0 || len(s.Data[corev1.ServiceAccountRootCAKey]) == 0 {
			return errors.New("the Secret is not filled")
		}
		return nil
	})
	roots := yaretest.WaitFor(t, kube.Namespaced[corev1.ConfigMap](client, namespace), "kube-root-ca.crt", func(*corev1.ConfigMap) error { return nil })
	config := cluster.Config().Anonymous()
	config.BearerToken = string(secret.Data[corev1.ServiceAccountTokenKey])
	config.CAData = []byte(roots.Data["ca.crt"])
	account, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.Namespaced[corev1.Secret](account, namespace).List(t.Context()); !kube.IsForbidden(err) {
		t.Errorf("with the token: %v", err) // Not unauthorized: it is known.
	}
}

// Requests without credentials, or with wrong ones, can only read the server's health.
func TestStrangersGetNothingButHealth(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cluster.Config().CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	ask := func(path, token string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cluster.Config().Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode
	}
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		if code := ask(path, ""); code != http.StatusOK {
			t.Errorf("%s without credentials: %d", path, code)
		}
	}
	for _, path := range []string{"/", "/version", "/api", "/apis", "/api/v1/namespaces", "/openapi/v2", "/metrics", "/readyz/etcd", "/debug/pprof/"} {
		if code := ask(path, ""); code != http.StatusUnauthorized {
			t.Errorf("%s without credentials: %d", path, code)
		}
	}
	if code := ask("/api/v1/namespaces", "made-up"); code != http.StatusUnauthorized {
		t.Errorf("with a made-up token: %d", code)
	}
}
