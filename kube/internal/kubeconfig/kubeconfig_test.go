package kubeconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// read returns the content of files with these texts.
func read(t *testing.T, texts ...string) *Kubeconfig {
	t.Helper()
	k := New()
	for _, text := range texts {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := k.AddFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func TestTheFirstFileThatDefinesANameDecides(t *testing.T) {
	t.Parallel()
	k := read(t, `
contexts: [{name: east, context: {cluster: one}}]
clusters: [{name: one, cluster: {server: https://one}}]
current-context: west
`, `
contexts: [{name: east, context: {cluster: two}}, {name: west, context: {cluster: two, namespace: mine}}]
clusters: [{name: one, cluster: {server: https://other}}, {name: two, cluster: {server: https://two}}]
current-context: east
`)
	for name, want := range map[string]string{"east": "https://one", "west": "https://two", "": "https://two"} {
		s, err := k.Select(name)
		if err != nil || s.Cluster.Server != want {
			t.Errorf("the context %q has the server %q: %v", name, s.Cluster.Server, err)
		}
	}
	if s, _ := k.Select(""); s.Context.Namespace != "mine" {
		t.Errorf("the namespace is %q", s.Context.Namespace)
	}
}

func TestAContextWithoutAClusterIsErrNoCluster(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "contexts: [{name: a, context: {cluster: gone}}]\ncurrent-context: a", "contexts: [{name: a}]"} {
		if _, err := read(t, text).Select(""); !errors.Is(err, ErrNoCluster) {
			t.Errorf("%q: %v", text, err)
		}
	}
	wrong := "users: [{name: u, user: {token: a, password: b}}]\ncontexts: [{name: a, context: {user: u}}]\ncurrent-context: a"
	if _, err := read(t, wrong).Select(""); err == nil || errors.Is(err, ErrNoCluster) {
		t.Errorf("the user is wrong, but the error is %v", err)
	}
}

// The error about a strange key does not quote its value, which may be a secret.
func TestErrorsQuoteNoValue(t *testing.T) {
	t.Parallel()
	_, err := parse([]byte("users: [{name: u, user: {null: s3cret}}]"))
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error is %v", err)
	}
}
