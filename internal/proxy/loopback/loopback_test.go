package loopback

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
)

func TestServer(t *testing.T) {
	t.Parallel()
	server, path, err := StartWithFile(t.TempDir(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	// KUBECONFIG is a list of files.
	if strings.ContainsRune(path, os.PathListSeparator) {
		t.Errorf("the path %s is two paths in KUBECONFIG", path)
	}
	config, _, err := kube.ConfigSource{Kubeconfig: path}.Load()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(config.CAData) {
		t.Fatal("the kubeconfig has no authority")
	}
	for _, c := range []struct {
		http2 bool
		token string
		code  int
		body  string
	}{
		{true, config.BearerToken, http.StatusOK, "HTTP/2.0"},
		{false, config.BearerToken, http.StatusOK, "HTTP/1.1"},
		{true, "", http.StatusUnauthorized, "the token is not that of the kubeconfig file\n"},
	} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: c.http2}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+c.token)
		answer, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != c.code || string(body) != c.body {
			t.Errorf("with HTTP/2 %t and the token %q the answer is %d %q, %v", c.http2, c.token, answer.StatusCode, body, err)
		}
	}
}
