package kube

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/yaml"
)

// kubeconfig is the content of several kubeconfig files. The first file that defines a name
// decides.
type kubeconfig struct {
	current  string
	clusters map[string]kubeconfigCluster
	users    map[string]kubeconfigUser
	contexts map[string]kubeconfigContext
}

// kubeconfigFile is one file, in the format of client-go's tools/clientcmd/api/v1.
type kubeconfigFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Clusters   []struct {
		Name    string            `json:"name"`
		Cluster kubeconfigCluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string         `json:"name"`
		User kubeconfigUser `json:"user"`
	} `json:"users"`
	Contexts []struct {
		Name    string            `json:"name"`
		Context kubeconfigContext `json:"context"`
	} `json:"contexts"`
	Current string `json:"current-context"`
}

type kubeconfigCluster struct {
	Server             string `json:"server"`
	TLSServerName      string `json:"tls-server-name"`
	Insecure           bool   `json:"insecure-skip-tls-verify"`
	CAFile             string `json:"certificate-authority"`
	CAData             []byte `json:"certificate-authority-data"`
	ProxyURL           string `json:"proxy-url"`
	DisableCompression bool   `json:"disable-compression"`
	Extensions         []struct {
		Name      string         `json:"name"`
		Extension jsontext.Value `json:"extension"`
	} `json:"extensions"`
}

type kubeconfigUser struct {
	CertFile  string              `json:"client-certificate"`
	CertData  []byte              `json:"client-certificate-data"`
	KeyFile   string              `json:"client-key"`
	KeyData   []byte              `json:"client-key-data"`
	Token     string              `json:"token"`
	TokenFile string              `json:"tokenFile"`
	As        string              `json:"as"`
	AsUID     string              `json:"as-uid"`
	AsGroups  []string            `json:"as-groups"`
	AsExtra   map[string][]string `json:"as-user-extra"`
	Username  string              `json:"username"`
	Password  string              `json:"password"`
	Exec      *kubeconfigExec     `json:"exec"`
	// AuthProvider belongs to plugins that are compiled into client-go.
	AuthProvider *struct {
		Name string `json:"name"`
	} `json:"auth-provider"`
}

type kubeconfigExec struct {
	Command            string               `json:"command"`
	Args               []string             `json:"args"`
	Env                []kubeconfigVariable `json:"env"`
	APIVersion         string               `json:"apiVersion"`
	InstallHint        string               `json:"installHint"`
	ProvideClusterInfo bool                 `json:"provideClusterInfo"`
	InteractiveMode    InteractiveMode      `json:"interactiveMode"`
}

type kubeconfigVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type kubeconfigContext struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace"`
}

func newKubeconfig() *kubeconfig {
	return &kubeconfig{
		clusters: map[string]kubeconfigCluster{},
		users:    map[string]kubeconfigUser{},
		contexts: map[string]kubeconfigContext{},
	}
}

// addFile adds the entries of the file that k lacks.
func (k *kubeconfig) addFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := parseKubeconfig(data)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("find the folder of %s: %w", path, err)
	}
	for _, c := range file.Clusters {
		resolvePaths(folder, &c.Cluster.CAFile)
		addMissing(k.clusters, c.Name, c.Cluster)
	}
	for _, u := range file.Users {
		resolvePaths(folder, &u.User.CertFile, &u.User.KeyFile, &u.User.TokenFile)
		// A command without a slash is looked for in PATH.
		if exec := u.User.Exec; exec != nil && strings.ContainsRune(exec.Command, filepath.Separator) {
			resolvePaths(folder, &exec.Command)
		}
		addMissing(k.users, u.Name, u.User)
	}
	for _, c := range file.Contexts {
		addMissing(k.contexts, c.Name, c.Context)
	}
	if k.current == "" {
		k.current = file.Current
	}
	return nil
}

// parseKubeconfig returns the file that data encodes, in YAML or JSON.
func parseKubeconfig(data []byte) (*kubeconfigFile, error) {
	file := new(kubeconfigFile)
	encoded, err := yaml.YAMLToJSON(data)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "yaml: "):
		return nil, err
	case err != nil: // it may quote a value, which may be a secret
		return nil, errors.New("a key in it is neither a text nor a number nor a boolean")
	}
	if err := Unmarshal(encoded, file); err != nil {
		return nil, err
	}
	if file.Kind != "" && file.Kind != "Config" || file.APIVersion != "" && file.APIVersion != "v1" {
		return nil, fmt.Errorf("it is a %s of %s, not a Config of v1", file.Kind, file.APIVersion)
	}
	return file, errors.Join(
		checkUnique("clusters", len(file.Clusters), func(i int) string { return file.Clusters[i].Name }),
		checkUnique("users", len(file.Users), func(i int) string { return file.Users[i].Name }),
		checkUnique("contexts", len(file.Contexts), func(i int) string { return file.Contexts[i].Name }))
}

// checkUnique returns an error if two of n elements have the same name.
func checkUnique(what string, n int, name func(int) string) error {
	names := make(map[string]bool, n)
	for i := range n {
		if names[name(i)] {
			return fmt.Errorf("two of its %s are named %q", what, name(i))
		}
		names[name(i)] = true
	}
	return nil
}

// resolvePaths makes relative paths absolute: paths in a kubeconfig belong to its folder.
func resolvePaths(folder string, paths ...*string) {
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
	}
}

func addMissing[V any](to map[string]V, name string, value V) {
	if _, ok := to[name]; !ok {
		to[name] = value
	}
}

// errNoCluster is the error of a kubeconfig that names no cluster at all, so that the
// configuration of a Pod is used.
var errNoCluster = errors.New("no cluster is defined")

// contextName returns the name of the context to use. asked may be empty.
func (k *kubeconfig) contextName(asked string) string {
	if asked != "" {
		return asked
	}
	return k.current
}

// config returns the configuration of a context. The name asked may be empty. The error is or
// wraps errNoCluster if there is no cluster and nothing else is wrong.
func (k *kubeconfig) config(asked string) (*Config, error) {
	name := k.contextName(asked)
	context, found := k.contexts[name]
	if !found && name != "" {
		return nil, fmt.Errorf("the context %q does not exist: name another with --context", name)
	}
	// A user that no file defines is an anonymous one.
	user := k.users[context.User]
	var errs []error
	for _, err := range user.check() {
		errs = append(errs, fmt.Errorf("the user %q: %w", context.User, err))
	}
	cluster, defined := k.clusters[context.Cluster]
	switch {
	case defined:
		for _, err := range cluster.check() {
			errs = append(errs, fmt.Errorf("the cluster %q: %w", context.Cluster, err))
		}
	case len(errs) == 0 && name == "" && len(k.contexts) > 0:
		return nil, fmt.Errorf("no context is the current one, so that %w: name one with --context", errNoCluster)
	case len(errs) == 0 && context.Cluster == "":
		return nil, errNoCluster
	case len(errs) == 0:
		return nil, fmt.Errorf("the context %q is of the cluster %q: %w", name, context.Cluster, errNoCluster)
	default:
		errs = append(errs, fmt.Errorf("the cluster %q: %w", context.Cluster, errNoCluster))
	}
	if len(errs) > 0 {
		return nil, errors.New(strings.ReplaceAll(errors.Join(errs...).Error(), "\n", "; "))
	}
	config := &Config{Host: cluster.Server, DisableCompression: cluster.DisableCompression}
	if cluster.ProxyURL != "" {
		proxy, err := parseProxyURL(cluster.ProxyURL)
		if err != nil {
			return nil, err
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	if u, err := url.ParseRequestURI(config.Host); err == nil && u.Opaque == "" && len(u.Path) > 1 {
		u.RawQuery, u.Fragment = "", ""
		config.Host = u.String()
	}
	if user.As != "" {
		config.Impersonate = Impersonation{UserName: user.As, UID: user.AsUID, Groups: user.AsGroups, Extra: user.AsExtra}
	}
	// Credentials are for servers with TLS only. An address without a scheme is one without TLS.
	if base, err := serverURL(config.Host, false); err != nil || base.Scheme != "https" {
		return config, nil
	}
	config.CAFile, config.CAData = cluster.CAFile, cluster.CAData
	config.ServerName, config.Insecure = cluster.TLSServerName, cluster.Insecure
	if err := user.addTo(config, cluster); err != nil {
		return nil, fmt.Errorf("the user %q: %w", context.User, err)
	}
	return config, nil
}

// check returns what is wrong with the cluster.
func (c *kubeconfigCluster) check() []error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Server == "" {
		fail("it has no server")
	}
	if c.ProxyURL != "" {
		if _, err := parseProxyURL(c.ProxyURL); err != nil {
			fail("%w", err)
		}
	}
	if c.CAFile != "" && len(c.CAData) > 0 {
		fail("it has both certificate-authority and certificate-authority-data: remove one of them")
	}
	if err := checkReadable(c.CAFile); err != nil {
		fail("its certificate-authority: %w", err)
	}
	return errs
}

// check returns what is wrong with the user.
func (u *kubeconfigUser) check() []error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if u.Token != "" && (u.Username != "" || u.Password != "") {
		fail("it has both a token and a password: remove one of them")
	}
	if u.CertFile != "" || len(u.CertData) > 0 {
		if u.CertFile != "" && len(u.CertData) > 0 {
			fail("it has both client-certificate and client-certificate-data: remove one of them")
		}
		if u.KeyFile != "" && len(u.KeyData) > 0 {
			fail("it has both client-key and client-key-data: remove one of them")
		}
		if u.KeyFile == "" && len(u.KeyData) == 0 {
			fail("it has a client certificate without a key: add client-key or client-key-data")
		}
		if err := checkReadable(u.CertFile); err != nil {
			fail("its client-certificate: %w", err)
		}
		if err := checkReadable(u.KeyFile); err != nil {
			fail("its client-key: %w", err)
		}
	}
	if u.AuthProvider != nil {
		fail("its auth-provider %q is a plugin of client-go, which yare does not contain: use a credential plugin (exec), such as kubelogin for OpenID Connect, or load the file with package kube/clientgo", u.AuthProvider.Name)
	}
	if e := u.Exec; e != nil {
		if e.Command == "" {
			fail("its exec has no command")
		}
		if e.APIVersion == "" {
			fail("its exec has no apiVersion: client.authentication.k8s.io/v1 is one")
		}
		if slices.ContainsFunc(e.Env, func(v kubeconfigVariable) bool { return v.Name == "" }) {
			fail("a variable of its exec has no name")
		}
		switch e.mode() {
		case InteractiveNever, InteractiveIfAvailable, InteractiveAlways:
		case "":
			fail("its exec has no interactiveMode: it is Never, IfAvailable or Always")
		default:
			fail("the interactiveMode of its exec is %q: it must be Never, IfAvailable or Always", e.InteractiveMode)
		}
	}
	if u.As == "" && (u.AsUID != "" || len(u.AsGroups) > 0 || len(u.AsExtra) > 0) {
		fail("it has as-uid, as-groups or as-user-extra without as: add the name of the user to impersonate")
	}
	return errs
}

// mode returns the interactive mode. The older versions of ExecCredential default to IfAvailable.
func (e *kubeconfigExec) mode() InteractiveMode {
	if e.InteractiveMode == "" && (e.APIVersion == execV1beta1 || e.APIVersion == "client.authentication.k8s.io/v1alpha1") {
		return InteractiveIfAvailable
	}
	return e.InteractiveMode
}

// addTo adds the credentials of u to a configuration of cluster.
func (u *kubeconfigUser) addTo(config *Config, cluster kubeconfigCluster) error {
	config.BearerToken, config.BearerTokenFile = u.Token, u.TokenFile
	if u.Token == "" && u.TokenFile != "" {
		token, err := os.ReadFile(u.TokenFile)
		if err != nil {
			return fmt.Errorf("its tokenFile: %w", err)
		}
		config.BearerToken = strings.TrimSpace(string(token))
	}
	if u.CertFile != "" || len(u.CertData) > 0 {
		config.CertFile, config.CertData = u.CertFile, u.CertData
		config.KeyFile, config.KeyData = u.KeyFile, u.KeyData
	}
	config.Username, config.Password = u.Username, u.Password
	e := u.Exec
	if e == nil {
		return nil
	}
	config.Exec = &ExecConfig{
		Command: e.Command, Args: e.Args, APIVersion: e.APIVersion,
		InstallHint:     printable(e.InstallHint),
		InteractiveMode: e.mode(), ProvideClusterInfo: e.ProvideClusterInfo,
	}
	for _, v := range e.Env {
		config.Exec.Env = append(config.Exec.Env, v.Name+"="+v.Value)
	}
	for _, extension := range cluster.Extensions {
		if extension.Name == "client.authentication.k8s.io/exec" {
			config.Exec.ClusterConfig = extension.Extension
		}
	}
	return nil
}

// printable returns s without control characters other than white space, which could change
// the state of a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || r >= '\t' && r <= '\r' {
			return r
		}
		return '·'
	}, s)
}

// checkReadable returns an error if the file cannot be opened. An empty path is no error.
func checkReadable(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

func parseProxyURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("its proxy-url is no URL") // the text of err can have a password
	}
	switch u.Scheme {
	case "http", "https", "socks5":
		return u, nil
	default:
		return nil, fmt.Errorf("its proxy-url %q must begin with http, https or socks5", u.Redacted())
	}
}

// serverURL returns the URL of a host, which can be a URL, a host, or a host and a port. A host
// without a scheme gets https if tls is true, else http.
func serverURL(host string, tls bool) (*url.URL, error) {
	if host == "" {
		return nil, errors.New("the address is empty: set Host to a URL, or to a host and a port")
	}
	u, err := url.Parse(host)
	if err == nil && u.Scheme != "" && u.Host != "" {
		return u, nil
	}
	scheme := "http://"
	if tls {
		scheme = "https://"
	}
	if u, err = url.Parse(scheme + host); err != nil {
		return nil, err
	}
	if u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("the address %q has a path and no scheme: begin it with https://", host)
	}
	return u, nil
}
