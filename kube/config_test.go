package kube

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/testkit/executable"
	"github.com/yare-go/yare/internal/testkit/testcert"
)

// writeKubeconfig writes a file with one cluster, user and context, all of the same name.
func writeKubeconfig(t *testing.T, name, server, user, more string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: %[1]s, cluster: {server: %[2]q%[4]s}}]
users: [{name: %[1]s, user: {%[3]s}}]
contexts: [{name: %[1]s, context: {cluster: %[1]s, user: %[1]s, namespace: in-%[1]s}}]
current-context: %[1]s
`, name, server, user, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// noCluster takes away whatever the machine knows of clusters. Tests that use it cannot
// run in parallel.
func noCluster(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_MASTER"} {
		t.Setenv(name, "")
	}
}

func TestConfigFromTheEnvironment(t *testing.T) {
	noCluster(t)
	east := writeKubeconfig(t, "east", "https://east.example.com", "token: e", "")
	west := writeKubeconfig(t, "west", "https://west.example.com", "token: w", "")
	missing := filepath.Join(t.TempDir(), "none")
	for _, test := range []struct {
		name            string
		list            []string
		source          ConfigSource
		host, namespace string
	}{
		{"one", []string{west}, ConfigSource{}, "https://west.example.com", "in-west"},
		{"the first of a list", []string{east, west}, ConfigSource{}, "https://east.example.com", "in-east"},
		{"another context of the list", []string{east, west}, ConfigSource{Context: "west"}, "https://west.example.com", "in-west"},
		{"a file that is missing in the list", []string{missing, west}, ConfigSource{}, "https://west.example.com", "in-west"},
		{"a file by name", []string{east}, ConfigSource{Kubeconfig: west}, "https://west.example.com", "in-west"},
	} {
		t.Setenv("KUBECONFIG", strings.Join(test.list, string(filepath.ListSeparator)))
		config, namespace, err := test.source.Load()
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		} else if config.Host != test.host || namespace != test.namespace {
			t.Errorf("%s: %s in %s", test.name, config.Host, namespace)
		}
	}
}

func TestConfigFromHome(t *testing.T) {
	noCluster(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(writeKubeconfig(t, "home", "https://home.example.com", "", ""), filepath.Join(home, ".kube", "config")); err != nil {
		t.Fatal(err)
	}
	config, _, err := ConfigSource{}.Load()
	if err != nil || config.Host != "https://home.example.com" {
		t.Errorf("loaded %v: %v", config, err)
	}
}

// The configuration of a Pod comes from its environment and its ServiceAccount.
func TestConfigOfAPod(t *testing.T) {
	noCluster(t)
	folder := t.TempDir()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	t.Cleanup(server.Close)
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if isInPod(folder) {
		t.Error("there is no token")
	}
	write("token", []byte("t\n"))
	if isInPod(folder) {
		t.Error("there is no address")
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	if !isInPod(folder) || podNamespace(folder) != "default" {
		t.Errorf("in a Pod %t, in %s", isInPod(folder), podNamespace(folder))
	}
	config, err := podConfig(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Host: "https://[fd00::1]:443", BearerToken: "t", BearerTokenFile: filepath.Join(folder, "token")}
	if !reflect.DeepEqual(*config, want) {
		t.Errorf("without a CA: %v", config)
	}
	write("ca.crt", testcert.PEM(server.Certificate()))
	write("namespace", []byte("mine\n"))
	if config, err = podConfig(folder); err != nil {
		t.Fatal(err)
	}
	want.CAFile = filepath.Join(folder, "ca.crt")
	if !reflect.DeepEqual(*config, want) || podNamespace(folder) != "mine" {
		t.Errorf("%v in %s", config, podNamespace(folder))
	}
	t.Setenv("POD_NAMESPACE", "other")
	if podNamespace(folder) != "other" {
		t.Errorf("the namespace is %s", podNamespace(folder))
	}
}

// Errors of the configuration say what to do.
func TestConfigThatIsWrong(t *testing.T) {
	noCluster(t)
	_, _, err := ConfigSource{}.Load()
	wantError(t, err, "there is no kubeconfig and this is no Pod: name a file with --kubeconfig or KUBECONFIG")

	missing := filepath.Join(t.TempDir(), "none")
	_, _, err = ConfigSource{Kubeconfig: missing}.Load()
	wantError(t, err, missing, "no such file")

	t.Setenv("KUBECONFIG", missing)
	_, _, err = ConfigSource{}.Load()
	wantError(t, err, "KUBECONFIG="+missing, "this is no Pod")

	good := writeKubeconfig(t, "east", "https://east.example.com", "", "")
	_, _, err = ConfigSource{Kubeconfig: good, Context: "west"}.Load()
	wantError(t, err, `context "west" does not exist`)

	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("clusters: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = ConfigSource{Kubeconfig: bad}.Load()
	wantError(t, err, "load the kubeconfig", bad)

	for user, want := range map[string]string{
		"auth-provider: {name: oidc}": `auth-provider "oidc" is a plugin of client-go`,
		"token: t, password: p":       `the user "bad": it has both a token and a password`,
		"exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}": "has no command",
	} {
		_, _, err = ConfigSource{Kubeconfig: writeKubeconfig(t, "bad", "https://bad.example.com", user, "")}.Load()
		wantError(t, err, "load the kubeconfig", want)
	}
	unknown := filepath.Join(t.TempDir(), "unknown")
	if err := os.WriteFile(unknown, []byte("contexts: [{name: c, context: {cluster: far}}]\ncurrent-context: c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = ConfigSource{Kubeconfig: unknown}.Load()
	wantError(t, err, unknown, `the context "c" is of the cluster "far"`)
}

// No way to print a configuration shows a secret.
func TestConfigPrintsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	config := &Config{
		Host: "https://user:" + secret + "@host.example.com", BearerToken: secret, Password: secret, Username: "u",
		KeyData: []byte(secret), CertData: []byte("c"), Impersonate: Impersonation{UserName: "them"},
		Exec: &ExecConfig{Command: "c", Args: []string{secret}, Env: []string{"A=" + secret}, ClusterConfig: []byte(secret)},
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("text", "config", config, "exec", config.Exec)
	slog.New(slog.NewTextHandler(&log, nil)).Info("text", "config", *config, "exec", *config.Exec)
	texts := []string{log.String(), config.String(), config.GoString(), config.Exec.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, config), fmt.Sprintf(verb, *config), fmt.Sprintf(verb, struct{ C Config }{*config}),
			fmt.Sprintf(verb, config.Exec), fmt.Sprintf(verb, *config.Exec))
	}
	for _, text := range texts {
		if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) {
			t.Errorf("printed %s", text)
		}
	}
	if text := config.String(); !strings.Contains(text, "host.example.com") || !strings.Contains(text, "client certificate, token, password") || !strings.Contains(text, `"them"`) {
		t.Errorf("printed %s", text)
	}
}

// A copy shares nothing with its original, and an anonymous copy has no credentials.
func TestConfigClone(t *testing.T) {
	t.Parallel()
	make := func() *Config {
		return &Config{
			Host: "h", CAData: []byte("a"), CertData: []byte("a"), KeyData: []byte("a"), BearerToken: "t", Username: "u", Password: "p",
			Impersonate: Impersonation{UserName: "u", Groups: []string{"a"}, Extra: map[string][]string{"k": {"a"}}},
			Exec:        &ExecConfig{Command: "c", Args: []string{"a"}, Env: []string{"A=a"}, ClusterConfig: []byte("a")},
		}
	}
	config := make()
	clone := config.Clone()
	if !reflect.DeepEqual(clone, config) {
		t.Errorf("the copy differs: %v", clone)
	}
	clone.CAData[0], clone.CertData[0], clone.KeyData[0] = 'b', 'b', 'b'
	clone.Impersonate.Groups[0], clone.Impersonate.Extra["k"][0], clone.Impersonate.Extra["l"] = "b", "b", nil
	clone.Exec.Command, clone.Exec.Args[0], clone.Exec.Env[0], clone.Exec.ClusterConfig[0] = "b", "b", "b", 'b'
	if !reflect.DeepEqual(config, make()) {
		t.Error("a change of the copy changed the original")
	}
	if got := config.Anonymous(); !reflect.DeepEqual(got, &Config{Host: "h", CAData: []byte("a")}) {
		t.Errorf("the anonymous copy is %v", got)
	}
}

// seen returns what the server sees of a request that client sends with config.
func seen(t *testing.T, file string, look func(*http.Request) string, start func(*httptest.Server)) (ask func() string) {
	t.Helper()
	views := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		views <- look(r)
		_, _ = w.Write([]byte(`{}`))
	}))
	start(server)
	t.Cleanup(server.Close)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(data), "SERVER", server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	config, _, err := ConfigSource{Kubeconfig: file}.Load()
	if err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, config)
	return func() string {
		t.Helper()
		if _, err := Get[corev1.Pod](t.Context(), c, "ns", "p"); err != nil {
			t.Fatal(err)
		}
		return <-views
	}
}

func authorization(r *http.Request) string { return r.Header.Get("Authorization") }

func TestExecCredentials(t *testing.T) {
	t.Parallel()
	plugin := filepath.Join(t.TempDir(), "credential")
	executable.Write(t, plugin, `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-exec"}}'
`)
	file := writeKubeconfig(t, "exec", "SERVER", fmt.Sprintf(
		`exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never}`, plugin), ", insecure-skip-tls-verify: true")
	if got := seen(t, file, authorization, (*httptest.Server).StartTLS)(); got != "Bearer from-exec" {
		t.Errorf("the server saw %q", got)
	}
}

// A plugin may wait for a person. The time that it takes is no silence of the server.
func TestPluginMayTakeLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	plugin := filepath.Join(t.TempDir(), "slow")
	executable.Write(t, plugin, `#!/bin/sh
sleep 0.5
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}'
`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"metadata":{"name":%q}}`, authorization(r))
	}))
	t.Cleanup(server.Close)
	c := clientOf(t, &Config{Host: server.URL, Exec: &ExecConfig{Command: plugin, APIVersion: execV1, InteractiveMode: "Never"}, Timeout: 300 * time.Millisecond})
	pod, err := Get[corev1.Pod](t.Context(), c, "ns", "p")
	if err != nil || pod.Name != "Bearer t" {
		t.Errorf("the server saw %q: %v", pod.GetName(), err)
	}
}

// The token of a ServiceAccount is a file that changes.
func TestTokenFileRotates(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	tokens := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { tokens <- authorization(r) }))
	t.Cleanup(server.Close)
	transport, err := newRoundTripper(&Config{Host: server.URL, BearerTokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		ask(t, transport, server.URL)
		if got := <-tokens; got != "Bearer "+want {
			t.Errorf("the server saw %q, want %q", got, want)
		}
	}
	expire := func() { transport.token.readAt = transport.token.readAt.Add(-tokenPeriod) }
	check("first")
	write("second\n")
	check("first") // for a minute
	expire()
	check("second")
	write("\n") // while the file is written again
	expire()
	check("second")
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	check("second")
	write("third\n")
	check("second") // for a second
	transport.token.readAt = transport.token.readAt.Add(-tokenRetryPeriod)
	check("third")
	// The kubeconfig's own way to such a file.
	file := writeKubeconfig(t, "file", "SERVER", fmt.Sprintf("tokenFile: %q", token), ", insecure-skip-tls-verify: true")
	if got := seen(t, file, authorization, (*httptest.Server).StartTLS)(); got != "Bearer third" {
		t.Errorf("the server saw %q", got)
	}
}

// ask sends a request by transport.
func ask(t *testing.T, transport http.RoundTripper, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}

func TestProxyOfTheKubeconfig(t *testing.T) {
	t.Parallel()
	asked := make(chan *url.URL, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(proxy.Close)
	file := writeKubeconfig(t, "proxied", "http://far.example.com/prefix", "", fmt.Sprintf(", proxy-url: %q", proxy.URL))
	config, _, err := ConfigSource{Kubeconfig: file}.Load()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Get[corev1.Pod](t.Context(), clientOf(t, config), "ns", "p"); err != nil {
		t.Fatal(err)
	}
	if got := (<-asked).String(); got != "http://far.example.com/prefix/api/v1/namespaces/ns/pods/p" {
		t.Errorf("the proxy was asked for %s", got)
	}
}
