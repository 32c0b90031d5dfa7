package clientgo_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/clientgo"
)

// files writes kubeconfig files into folders of their own, with a file "there" in each folder,
// and returns their paths.
func files(t *testing.T, contents ...string) []string {
	t.Helper()
	var paths []string
	for _, content := range contents {
		folder := t.TempDir()
		for name, content := range map[string]string{"config": content, "there": "content\n", "token": "from-file\n"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		paths = append(paths, filepath.Join(folder, "config"))
	}
	return paths
}

// compare loads the same source by yare and by client-go, and fails the test for differences. It
// reports whether both loaded the source.
func compare(t *testing.T, name string, source kube.ConfigSource) bool {
	t.Helper()
	got, gotNamespace, gotErr := source.Load()
	want, wantNamespace, wantErr := clientgo.Load(source)
	if (gotErr != nil) != (wantErr != nil) {
		t.Errorf("%s:\nyare      %v\nclient-go %v", name, gotErr, wantErr)
	}
	if gotErr != nil || wantErr != nil {
		return false
	}
	if gotNamespace != wantNamespace {
		t.Errorf("%s: the namespace is %q, of client-go %q", name, gotNamespace, wantNamespace)
	}
	if diff := cmp.Diff(plain(t, want), plain(t, got), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: differs from client-go (-) in:\n%s", name, diff)
	}
	return true
}

// plain returns a configuration as values that can be compared.
func plain(t *testing.T, c *kube.Config) map[string]any {
	t.Helper()
	proxy := ""
	if c.Proxy != nil {
		request, err := http.NewRequest(http.MethodGet, "https://host.example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		u, err := c.Proxy(request)
		if err != nil {
			t.Fatal(err)
		}
		proxy = u.String()
	}
	values := map[string]any{
		"Host": c.Host, "CAData": string(c.CAData), "CAFile": c.CAFile, "ServerName": c.ServerName, "Insecure": c.Insecure,
		"CertData": string(c.CertData), "CertFile": c.CertFile, "KeyData": string(c.KeyData), "KeyFile": c.KeyFile,
		"BearerToken": strings.TrimSpace(c.BearerToken), "BearerTokenFile": c.BearerTokenFile,
		"Username": c.Username, "Password": c.Password, "Impersonate": c.Impersonate, "Proxy": proxy,
		"DisableCompression": c.DisableCompression, "UserAgent": c.UserAgent, "Timeout": c.Timeout,
		"WrapTransport": c.WrapTransport != nil, "Dial": c.Dial != nil,
	}
	if e := c.Exec; e != nil {
		values["Exec"] = []any{e.Command, strings.Join(e.Args, " "), strings.Join(e.Env, " "), e.APIVersion, e.InteractiveMode, e.ProvideClusterInfo, string(e.ClusterConfig)}
	}
	return values
}

// kubeconfigs are files that are loaded one by one. In most, a cluster, a user and a context
// are named a.
func kubeconfigs() map[string]string {
	data := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	one := func(cluster, user, context string) string {
		return fmt.Sprintf("clusters: [{name: a, cluster: {%s}}]\nusers: [{name: a, user: {%s}}]\ncontexts: [{name: a, context: {%s}}]\ncurrent-context: a\n", cluster, user, context)
	}
	const server, both = `server: "https://a.example.com"`, "cluster: a, user: a"
	all := map[string]string{
		"empty":                  "",
		"comment":                "# nothing\n",
		"null":                   "null",
		"list":                   "[]",
		"text":                   "text",
		"no YAML":                "clusters: [",
		"JSON":                   `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"a","cluster":{"server":"https://a"}}],"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"users":[{"name":"a","user":{"token":"t"}}],"current-context":"a"}`,
		"other version":          "apiVersion: v2\nkind: Config\n" + one(server, "", both),
		"other group":            "apiVersion: example.com/v1\nkind: Config\n" + one(server, "", both),
		"other kind":             "apiVersion: v1\nkind: Pod\n" + one(server, "", both),
		"kind without version":   "kind: Config\n" + one(server, "", both),
		"unknown field":          "more: 1\n" + one(server+", more: 1", "", both),
		"other case":             "Clusters: []\n" + one(server+", Server: b", "Token: t", both),
		"null lists":             "clusters: null\nusers: null\ncontexts: null\ncurrent-context: null\n",
		"null values":            "clusters: [{name: a, cluster: null}]\nusers: [{name: a, user: null}]\ncontexts: [{name: a, context: null}]\ncurrent-context: a\n",
		"number as text":         one(server, "token: 123", both),
		"text as number":         one(server+", insecure-skip-tls-verify: nope", "", both),
		"two of a name":          "clusters: [{name: a, cluster: {server: x}}, {name: a, cluster: {server: z}}]\n",
		"two users of a name":    "users: [{name: a, user: {token: x}}, {name: a, user: {token: z}}]\n",
		"two contexts of a name": "contexts: [{name: a, context: {cluster: x}}, {name: a, context: {cluster: z}}]\n",
		"no current context":     strings.ReplaceAll(one(server, "token: t", both), "current-context: a", ""),
		"unknown context":        strings.ReplaceAll(one(server, "token: t", both), "current-context: a", "current-context: b"),
		"unknown cluster":        one(server, "token: t", "cluster: b, user: a"),
		"unknown user":           one(server, "token: t", "cluster: a, user: b"),
		"no names":               "clusters: [{cluster: {server: 'https://a'}}]\nusers: [{user: {token: t}}]\n",
		"anchors":                "x: &s {server: 'https://a'}\nclusters: [{name: a, cluster: *s}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n",
		"two documents":          one(server, "token: t", both) + "---\nkind: Pod\n",
		"namespace":              one(server, "", both+", namespace: ns"),
		"bad CA":                 one(server+", certificate-authority-data: '!'", "", both),
		"CA in lines":            one(server+", certificate-authority-data: \"YQ\\n==\"", "", both),
	}
	for name, cluster := range map[string]string{
		"no server": "", "server without a scheme": "server: a.example.com", "server with a port": "server: 'a:6443'", "HTTP": "server: 'http://a'",
		"HTTPS": "server: 'https://a'", "path": "server: 'https://a/prefix/?q#f'", "slash": "server: 'https://a/?q'", "no URL": "server: 'https://%'", "opaque": "server: 'https:a/b'",
		"address": "server: '10.0.0.1:6443'",
		"CA file": server + ", certificate-authority: there", "missing CA file": server + ", certificate-authority: gone", "CA data": server + ", certificate-authority-data: " + data("ca"),
		"two CAs": server + ", certificate-authority: there, certificate-authority-data: " + data("ca"), "CA and insecure": server + ", certificate-authority: there, insecure-skip-tls-verify: true",
		"insecure": server + ", insecure-skip-tls-verify: true", "name": server + ", tls-server-name: name", "uncompressed": server + ", disable-compression: true",
		"proxy": server + ", proxy-url: 'http://user:secret@proxy:3128'", "SOCKS": server + ", proxy-url: 'socks5://proxy'", "FTP proxy": server + ", proxy-url: 'ftp://proxy'", "no proxy URL": server + ", proxy-url: '%'",
		"extension": server + ", extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: 1}}]",
	} {
		all["cluster: "+name] = one(cluster, "token: t, as: u", both)
		all["cluster: "+name+", plugin"] = one(cluster, "exec: {command: c, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, provideClusterInfo: true}", both)
	}
	const exec = "exec: {command: there, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never"
	for name, user := range map[string]string{
		"nothing": "", "token": "token: t", "token file": "tokenFile: token", "missing token file": "tokenFile: gone", "token and missing file": "token: t, tokenFile: gone", "token and file": "token: t, tokenFile: token",
		"password": "username: u, password: p", "password alone": "password: p", "name alone": "username: u", "token and password": "token: t, username: u", "token file and password": "tokenFile: token, username: u",
		"certificate files": "client-certificate: there, client-key: there", "certificate data": "client-certificate-data: YQ==, client-key-data: Yg==",
		"certificate without key": "client-certificate: there", "key without certificate": "client-key: there", "two certificates": "client-certificate: there, client-certificate-data: YQ==, client-key: there",
		"two keys": "client-certificate: there, client-key: there, client-key-data: Yg==", "missing certificate": "client-certificate: gone, client-key: there", "missing key": "client-certificate: there, client-key: gone",
		"mixed": "client-certificate: there, client-key-data: Yg==, token: t",
		"as":    "as: u", "all of as": "as: u, as-uid: '1', as-groups: [g, h], as-user-extra: {k: [v, w]}", "groups alone": "as-groups: [g]", "uid alone": "as-uid: '1'", "extra alone": "as-user-extra: {k: [v]}",
		"plugin": exec + "}", "plugin with arguments": exec + ", args: [a, b], env: [{name: NAME, value: val}], installHint: h, provideClusterInfo: true}", "variable without a name": exec + ", env: [{value: v}]}", "null arguments": exec + ", args: null, env: null}",
		"plugin by path": "exec: {command: ./there, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}", "plugin by absolute path": "exec: {command: /bin/true, apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable}",
		"plugin without a command": "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", "plugin without a version": "exec: {command: c, interactiveMode: Never}",
		"plugin without a mode": "exec: {command: c, apiVersion: client.authentication.k8s.io/v1}", "beta plugin without a mode": "exec: {command: c, apiVersion: client.authentication.k8s.io/v1beta1}", "alpha plugin": "exec: {command: c, apiVersion: client.authentication.k8s.io/v1alpha1}",
		"unknown mode": "exec: {command: c, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Maybe}", "plugin and token": exec + "}, token: t",
	} {
		all["user: "+name] = one(server, user, both)
		all["user: "+name+", HTTP"] = one("server: 'http://a'", user, both)
		all["user: "+name+", no cluster"] = one(server, user, "cluster: b, user: a")
	}
	return all
}

// TestKubeconfigsAreLoadedAsByClientGo compares one file after the other.
func TestKubeconfigsAreLoadedAsByClientGo(t *testing.T) {
	t.Parallel()
	for name, content := range kubeconfigs() {
		path := files(t, content)[0]
		for _, context := range []string{"", "a", "b"} {
			compare(t, fmt.Sprintf("%s, context %q", name, context), kube.ConfigSource{Kubeconfig: path, Context: context})
		}
	}
	compare(t, "a missing file", kube.ConfigSource{Kubeconfig: filepath.Join(t.TempDir(), "gone")})
	compare(t, "a folder", kube.ConfigSource{Kubeconfig: t.TempDir()})
}

// TestListsAreMergedAsByClientGo compares lists of KUBECONFIG, with files that are missing,
// broken, empty or named twice.
func TestListsAreMergedAsByClientGo(t *testing.T) {
	const first, second = `
clusters: [{name: a, cluster: {server: "https://first"}}, {name: b, cluster: {server: "https://b", certificate-authority: there}}]
users: [{name: a, user: {token: first}}]
contexts: [{name: a, context: {cluster: a, user: c}}, {name: d, context: {cluster: a, user: a, namespace: ns}}]
`, `
clusters: [{name: a, cluster: {server: "https://second", insecure-skip-tls-verify: true}}]
users: [{name: a, user: {username: second}}, {name: c, user: {tokenFile: token}}]
contexts: [{name: a, context: {cluster: b, user: a}}, {name: e, context: {cluster: b, user: c}}]
current-context: a
`
	paths := files(t, first, second, "", "clusters: [", "current-context: e")
	missing := filepath.Join(t.TempDir(), "gone")
	t.Setenv("HOME", t.TempDir())
	for _, list := range [][]string{
		{paths[0], paths[1]}, {paths[1], paths[0]}, {paths[0]}, {paths[1]}, {paths[0], paths[0], paths[1]}, {missing, paths[1]}, {missing},
		{paths[2]}, {paths[2], paths[1]}, {paths[1], paths[3]}, {paths[4], paths[0], paths[1]}, {paths[0], paths[4], paths[1]}, {paths[1], "", paths[0]},
	} {
		t.Setenv("KUBECONFIG", strings.Join(list, string(filepath.ListSeparator)))
		for _, context := range []string{"", "a", "d", "e", "none"} {
			compare(t, fmt.Sprintf("%v, context %q", list, context), kube.ConfigSource{Context: context})
		}
	}
	// A relative name of a file, and relative names in it.
	t.Chdir(filepath.Dir(paths[1]))
	t.Setenv("KUBECONFIG", "config")
	for _, context := range []string{"", "e"} {
		compare(t, "a relative path", kube.ConfigSource{Context: context})
	}
}

// TestRandomListsAreMergedAsByClientGo compares lists of random files.
func TestRandomListsAreMergedAsByClientGo(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	loaded := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		var contents []string
		for range 1 + r.IntN(3) {
			contents = append(contents, randomFile(r))
		}
		t.Setenv("KUBECONFIG", strings.Join(files(t, contents...), string(filepath.ListSeparator)))
		name := fmt.Sprintf("seed %d:\n%s", seed, strings.Join(contents, "---\n"))
		compare(t, name, kube.ConfigSource{})
		if compare(t, name+"context a", kube.ConfigSource{Context: "a"}) {
			loaded++
		}
		if t.Failed() {
			return
		}
	}
	if loaded < 50 {
		t.Errorf("only %d of 150 lists can be loaded, which tests too little", loaded)
	}
}

func randomFile(r *rand.Rand) string {
	pick := func(options ...string) string { return options[r.IntN(len(options))] }
	// fields returns each of the fields with a chance of one in n.
	fields := func(n int, options ...string) string {
		var chosen []string
		for _, option := range options {
			if r.IntN(n) == 0 {
				chosen = append(chosen, option)
			}
		}
		return strings.Join(chosen, ", ")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "clusters:\n")
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(&b, "- {name: %s, cluster: {server: %q, %s}}\n", name, pick("https://a/", "https://b:6443/x", "https://c", "http://d", "e:80"),
			fields(6, "certificate-authority: there", "certificate-authority-data: YQ==", "insecure-skip-tls-verify: true", "tls-server-name: s", "proxy-url: 'http://p'", "disable-compression: true"))
	}
	fmt.Fprintf(&b, "users:\n")
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(&b, "- {name: %s, user: {%s}}\n", name,
			fields(7, "token: t", "tokenFile: token", "username: u", "password: p", "client-certificate: there", "client-certificate-data: YQ==", "client-key: ./there", "client-key-data: Yg==",
				"as: u", "as-groups: [g]", "as-uid: u", "exec: {command: ./c, apiVersion: client.authentication.k8s.io/v1beta1, args: [x], env: [{name: NAME, value: val}]}"))
	}
	fmt.Fprintf(&b, "contexts:\n")
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(&b, "- {name: %s, context: {cluster: %s, user: %s, %s}}\n", name, pick("a", "b", "b", "c"), pick("a", "b", "b", "c"), fields(2, "namespace: ns"))
	}
	fmt.Fprintf(&b, "%s\n", fields(2, "current-context: "+pick("a", "b", "b", "c")))
	return b.String()
}

// FuzzKubeconfig compares files with any content.
func FuzzKubeconfig(f *testing.F) {
	for _, content := range kubeconfigs() {
		f.Add(content)
	}
	folder := f.TempDir()
	for _, name := range []string{"there", "token"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("content"), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, content string) {
		if strings.Contains(content, "auth-provider") {
			t.Skip("an auth-provider is an error of its own")
		}
		path := filepath.Join(folder, "config")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		compare(t, content, kube.ConfigSource{Kubeconfig: path})
	})
}
