package kube

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clienttransport "k8s.io/client-go/transport"
)

// kubeconfig writes a file with one cluster, user and context, all of the same name.
func kubeconfig(t *testing.T, name, server, user, more string) string {
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
	east := kubeconfig(t, "east", "https://east.example.com", "token: e", "")
	west := kubeconfig(t, "west", "https://west.example.com", "token: w", "")
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
	if os.Getenv("KUBE_TEST_HOME") != "" {
		config, _, err := ConfigSource{}.Load()
		if err != nil || config.Host != "https://home.example.com" {
			t.Errorf("loaded %v: %v", config, err)
		}
		return
	}
	// client-go looks for the home folder once, when the process starts.
	noCluster(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBE_TEST_HOME", home)
	if err := os.Mkdir(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(kubeconfig(t, "home", "https://home.example.com", "", ""), filepath.Join(home, ".kube", "config")); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command(os.Args[0], "-test.run=^TestConfigFromHome$").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, output)
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

	good := kubeconfig(t, "east", "https://east.example.com", "", "")
	_, _, err = ConfigSource{Kubeconfig: good, Context: "west"}.Load()
	wantError(t, err, `context "west" does not exist`)

	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("clusters: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = ConfigSource{Kubeconfig: bad}.Load()
	wantError(t, err, "load the kubeconfig", bad)
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
	script := filepath.Join(t.TempDir(), "credential")
	if err := os.WriteFile(script, []byte(`#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-exec"}}'
`), 0o700); err != nil {
		t.Fatal(err)
	}
	file := kubeconfig(t, "exec", "SERVER", fmt.Sprintf(
		`exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never}`, script), ", insecure-skip-tls-verify: true")
	if got := seen(t, file, authorization, (*httptest.Server).StartTLS)(); got != "Bearer from-exec" {
		t.Errorf("the server saw %q", got)
	}
}

// The token of a ServiceAccount is a file that changes. client-go reads it again each
// minute; here the cache gets the time that has passed.
func TestTokenFileRotates(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	tokens := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens <- authorization(r)
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	source := clienttransport.NewCachedFileTokenSource(token)
	c := clientOf(t, &rest.Config{Host: server.URL, WrapTransport: clienttransport.ResettableTokenSourceWrapTransport(source)})
	for _, want := range []string{"first", "second"} {
		write(want)
		source.ResetTokenOlderThan(farFuture())
		if _, err := Get[corev1.Pod](t.Context(), c, "ns", "p"); err != nil {
			t.Fatal(err)
		}
		if got := <-tokens; got != "Bearer "+want {
			t.Errorf("the server saw %q, want %q", got, want)
		}
	}
	// The kubeconfig's own way to such a file.
	file := kubeconfig(t, "file", "SERVER", fmt.Sprintf("tokenFile: %q", token), ", insecure-skip-tls-verify: true")
	if got := seen(t, file, authorization, (*httptest.Server).StartTLS)(); got != "Bearer second" {
		t.Errorf("the server saw %q", got)
	}
}

func TestProxyOfTheKubeconfig(t *testing.T) {
	t.Parallel()
	asked := make(chan *url.URL, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(proxy.Close)
	file := kubeconfig(t, "proxied", "http://far.example.com/prefix", "", fmt.Sprintf(", proxy-url: %q", proxy.URL))
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
