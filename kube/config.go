package kube

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// Config describes how a client reaches one API server, and as whom. [ConfigSource.Load]
// returns the Config of a kubeconfig or of a Pod. Package kube/clientgo converts a rest.Config
// of client-go.
//
// A Config is plain data. [Config.Clone] returns a deep copy. Printing a Config shows no
// secret.
type Config struct {
	// Host is the address of the server: a URL, a host, or a host and a port. The path of a
	// URL stands before the path of each request. Without a scheme the client uses https if
	// the configuration has a CA or sets Insecure, else http.
	Host string
	// Context is the name of the context of the kubeconfig that the configuration comes from. It is for messages, and
	// empty without a kubeconfig.
	Context string

	// CAData holds the certificates that the server's certificate is checked against, in PEM.
	// Default: the content of CAFile.
	CAData []byte
	// CAFile names the file of such certificates. A client reads the file again at most every
	// five minutes. Connections that were made before go on. Default: the certificates that
	// the system trusts.
	CAFile string
	// ServerName is the name in the server's certificate. Default: the name in Host.
	ServerName string
	// Insecure skips the check of the server's certificate. It cannot be combined with a CA.
	Insecure bool

	// CertData and KeyData hold the client's certificate and its private key, in PEM. Each
	// takes precedence over its file.
	CertData, KeyData []byte
	// CertFile and KeyFile name the files of both. If both are files, a client reads the files
	// again for each connection, and at most every five minutes for its requests. Requests
	// after a change use new connections.
	CertFile, KeyFile string

	// BearerToken is sent with each request, unless BearerTokenFile holds a token.
	BearerToken string
	// BearerTokenFile names the file of a token, which is read again after 50 s, and after a second if it could not be
	// read. The token that was read last takes precedence over BearerToken.
	BearerTokenFile string
	// Username and Password are the credentials of HTTP basic authentication. They cannot be
	// combined with a token.
	Username, Password string
	// Exec describes a program that prints credentials, or is nil. The program is not used if
	// the configuration has a token, a user name or a client certificate.
	Exec *ExecConfig

	// Impersonate is the user in whose name the requests are sent. Default: the user that the
	// credentials belong to.
	Impersonate Impersonation

	// Proxy returns the proxy of a request, as in [http.Transport]. Default:
	// [http.ProxyFromEnvironment].
	Proxy func(*http.Request) (*url.URL, error)
	// Dial opens connections. Default: a net.Dialer with a timeout of 30 s.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DisableCompression asks the server not to compress its answers. Servers compress large lists,
	// and from Kubernetes 1.37 on also streaming lists and what follows on the same watch.
	// Compression leaves a tenth of the bytes of 10,000 objects of 1.7 KB. It costs the client some
	// 30 ms of CPU, about as much as it saves in TLS. A later event costs 13 µs more.
	DisableCompression bool
	// WrapTransport, if it is set, returns a RoundTripper around its argument, which sends requests with
	// their credentials. A client calls WrapTransport once. The argument has a method CloseIdleConnections,
	// which closes unused connections. Otherwise unused connections close after 90 s.
	WrapTransport func(http.RoundTripper) http.RoundTripper

	// UserAgent is the header of that name. Default of a client: the name of the program and /yare.
	UserAgent string
	// Timeout is how long the server may be silent before a request fails: until its answer begins, all repetitions
	// included, and between two parts of the answer. A watch must begin within this time. Zero or less: 30 s.
	Timeout time.Duration
	// MaxWrites is how many writes are in flight at a time, of a client and of all clients that are derived from it
	// together. Further writes wait until their context ends. Timeout does not count during this wait. A write that
	// waits to be repeated is not in flight. Reads and watches are not limited. Zero: 64.
	MaxWrites int
	// OnWarning receives each warning of the server about a request, such as a warning about a deprecated version.
	// Several goroutines call it, each with the context of its request. Nil: each text is logged once, with the
	// context of its request.
	OnWarning func(ctx context.Context, r *wire.Request, text string)
	// WrapAttempts, if it is set, returns a handler around the transport, below the repetition of requests and
	// MaxWrites. So each attempt to send a request passes the handler. If the handler returns an error other than a
	// [*wire.Error], the request ends and is not repeated. A client calls WrapAttempts once.
	WrapAttempts func(next wire.Handler) wire.Handler
}

// Impersonation describes a user in whose name another user sends requests. The server refuses
// a UID, groups or extra without a user name.
type Impersonation struct {
	UserName string
	UID      string
	Groups   []string
	// Extra holds further attributes of the user, such as scopes.
	Extra map[string][]string
}

// ExecConfig describes a program that prints credentials: a credential plugin, as KEP-541
// defines it. The program gets an ExecCredential in the environment variable
// KUBERNETES_EXEC_INFO and prints an ExecCredential with a token, a client certificate, or
// both. It runs before the first request, when its credentials have expired, and again after the
// server has refused a request with 401. It may run for five minutes, during which no timeout of a
// request counts. The failure of a run is the error of all requests that wait for the run, and of those that begin
// during a pause after the run. The pause lasts for a second, and twice as long after each further failure, up to a
// minute.
type ExecConfig struct {
	// Command is the path of the program, or its name in the folders of PATH.
	Command string
	Args    []string
	// Env holds variables in addition to the environment of this process, in the form NAME=value.
	Env []string
	// APIVersion is the version of ExecCredential that the program knows:
	// client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1.
	APIVersion string
	// InstallHint stands in the error if the program is not installed.
	InstallHint string
	// InteractiveMode decides whether the program gets the standard input of this process: Never, IfAvailable (if it
	// is a terminal) or Always (a standard input that is no terminal is an error). KEP-541 defines the modes.
	InteractiveMode string
	// ProvideClusterInfo gives the program the address and the CA of the server.
	ProvideClusterInfo bool
	// ClusterConfig is the JSON of the cluster's settings for the program, which the program
	// gets with ProvideClusterInfo. In a kubeconfig it is the cluster's extension
	// client.authentication.k8s.io/exec.
	ClusterConfig []byte
}

// The values of ExecConfig.InteractiveMode.
const (
	interactiveNever       = "Never"
	interactiveIfAvailable = "IfAvailable"
	interactiveAlways      = "Always"
)

// Clone returns a copy that shares no data with c. The functions are shared.
func (c *Config) Clone() *Config {
	d := *c
	d.CAData, d.CertData, d.KeyData = slices.Clone(c.CAData), slices.Clone(c.CertData), slices.Clone(c.KeyData)
	d.Impersonate.Groups = slices.Clone(c.Impersonate.Groups)
	d.Impersonate.Extra = maps.Clone(c.Impersonate.Extra)
	for name, values := range d.Impersonate.Extra {
		d.Impersonate.Extra[name] = slices.Clone(values)
	}
	if c.Exec != nil {
		e := *c.Exec
		e.Args, e.Env, e.ClusterConfig = slices.Clone(e.Args), slices.Clone(e.Env), slices.Clone(e.ClusterConfig)
		d.Exec = &e
	}
	return &d
}

// Anonymous returns a copy of c without credentials, impersonation and WrapTransport.
func (c *Config) Anonymous() *Config {
	d := c.Clone()
	d.CertData, d.KeyData, d.CertFile, d.KeyFile = nil, nil, "", ""
	d.BearerToken, d.BearerTokenFile, d.Username, d.Password = "", "", "", ""
	d.Exec, d.Impersonate, d.WrapTransport = nil, Impersonation{}, nil
	return d
}

// String returns the server, the kinds of the credentials, and the user that is impersonated.
// It shows no secret.
func (c Config) String() string {
	host := c.Host
	if u, err := url.Parse(host); err == nil {
		host = u.Redacted()
	} else {
		host = host[strings.LastIndexByte(host, '@')+1:] // without a password
	}
	text := fmt.Sprintf("kube.Config{Host: %q, Credentials: %q", host, c.credentials())
	if c.Impersonate.UserName != "" {
		text += fmt.Sprintf(", Impersonate: %q", c.Impersonate.UserName)
	}
	return text + "}"
}

// GoString returns the same text as [Config.String].
func (c Config) GoString() string { return c.String() }

// Format prints the text of [Config.String] for every verb.
func (c Config) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(c.String())) }

// LogValue returns the text of [Config.String].
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// credentials returns the kinds of the credentials.
func (c Config) credentials() string {
	var kinds []string
	add := func(has bool, kind string) {
		if has {
			kinds = append(kinds, kind)
		}
	}
	add(c.hasCertificate(), "client certificate")
	add(c.BearerTokenFile != "", "token file "+c.BearerTokenFile)
	add(c.BearerToken != "" && c.BearerTokenFile == "", "token")
	add(c.hasBasicAuth(), "password")
	add(c.Exec != nil && c.hasExec(), "credential plugin")
	if len(kinds) == 0 {
		return "none"
	}
	return strings.Join(kinds, ", ")
}

// String returns the command and the number of arguments and variables, which can be secret.
func (e ExecConfig) String() string {
	return fmt.Sprintf("kube.ExecConfig{Command: %q, %d arguments, %d variables}", e.Command, len(e.Args), len(e.Env))
}

// Format prints the text of [ExecConfig.String] for every verb.
func (e ExecConfig) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(e.String())) }

// LogValue returns the text of [ExecConfig.String].
func (e ExecConfig) LogValue() slog.Value { return slog.StringValue(e.String()) }

func (c *Config) hasCA() bool          { return len(c.CAData) > 0 || c.CAFile != "" }
func (c *Config) hasToken() bool       { return c.BearerToken != "" || c.BearerTokenFile != "" }
func (c *Config) hasBasicAuth() bool   { return c.Username != "" }
func (c *Config) hasCertificate() bool { return c.hasCert() && c.hasKey() }
func (c *Config) hasCert() bool        { return len(c.CertData) > 0 || c.CertFile != "" }
func (c *Config) hasKey() bool         { return len(c.KeyData) > 0 || c.KeyFile != "" }

// hasExec reports whether the credentials come from c.Exec.
func (c *Config) hasExec() bool {
	return c.Exec != nil && !c.hasToken() && !c.hasBasicAuth() && !c.hasCertificate()
}
