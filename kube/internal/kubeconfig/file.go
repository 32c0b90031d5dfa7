package kubeconfig

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// file is one file, in the format of client-go's tools/clientcmd/api/v1.
type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Clusters   []struct {
		Name    string  `json:"name"`
		Cluster Cluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User User   `json:"user"`
	} `json:"users"`
	Contexts []struct {
		Name    string  `json:"name"`
		Context Context `json:"context"`
	} `json:"contexts"`
	Current string `json:"current-context"`
}

// Cluster describes how to reach a server.
type Cluster struct {
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

// User holds the credentials of a user.
type User struct {
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
	Exec      *Exec               `json:"exec"`
	// AuthProvider belongs to plugins that are compiled into client-go.
	AuthProvider *struct {
		Name string `json:"name"`
	} `json:"auth-provider"`
}

// Exec describes a credential plugin (KEP-541).
type Exec struct {
	Command            string     `json:"command"`
	Args               []string   `json:"args"`
	Env                []Variable `json:"env"`
	APIVersion         string     `json:"apiVersion"`
	InstallHint        string     `json:"installHint"`
	ProvideClusterInfo bool       `json:"provideClusterInfo"`
	InteractiveMode    string     `json:"interactiveMode"`
}

// Variable is an environment variable of a credential plugin.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Context names a cluster, and the user and the namespace to use there.
type Context struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace"`
}

// parse returns the file that data encodes, in YAML or JSON.
func parse(data []byte) (*file, error) {
	f := new(file)
	encoded, err := yaml.YAMLToJSON(data)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "yaml: "):
		return nil, err
	case err != nil: // it may quote a value, which may be a secret
		return nil, errors.New("a key in it is neither a text nor a number nor a boolean")
	}
	if err := utiljson.Unmarshal(encoded, f); err != nil {
		return nil, err
	}
	if f.Kind != "" && f.Kind != "Config" || f.APIVersion != "" && f.APIVersion != "v1" {
		return nil, fmt.Errorf("it is a %s of %s, not a Config of v1", f.Kind, f.APIVersion)
	}
	return f, errors.Join(
		checkUnique("clusters", len(f.Clusters), func(i int) string { return f.Clusters[i].Name }),
		checkUnique("users", len(f.Users), func(i int) string { return f.Users[i].Name }),
		checkUnique("contexts", len(f.Contexts), func(i int) string { return f.Contexts[i].Name }))
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

// check returns what is wrong with the cluster.
func (c *Cluster) check() []error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Server == "" {
		fail("it has no server")
	}
	if c.ProxyURL != "" {
		if _, err := c.Proxy(); err != nil {
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

// Proxy returns the proxy-url, which must not be empty.
func (c *Cluster) Proxy() (*url.URL, error) {
	u, err := url.Parse(c.ProxyURL)
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

// check returns what is wrong with the user.
func (u *User) check() []error {
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
		if slices.ContainsFunc(e.Env, func(v Variable) bool { return v.Name == "" }) {
			fail("a variable of its exec has no name")
		}
		switch e.Mode() {
		case "Never", "IfAvailable", "Always":
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

// Mode returns the interactive mode. The older versions of ExecCredential default to IfAvailable.
func (e *Exec) Mode() string {
	if e.InteractiveMode == "" &&
		(e.APIVersion == "client.authentication.k8s.io/v1beta1" || e.APIVersion == "client.authentication.k8s.io/v1alpha1") {
		return "IfAvailable"
	}
	return e.InteractiveMode
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
