package clientgo_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/clientgo"
)

// seen is what a server saw of one request.
type seen struct {
	Method, Path string
	Header       http.Header
	Body         string
	Certificate  string
	Major        int
}

// backend is a server that records requests. It answers 401 to a request with the token
// "refused".
type backend struct {
	*httptest.Server
	requests chan seen
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{requests: make(chan seen, 100)}
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := seen{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Major: r.ProtoMajor}
		if len(r.TLS.PeerCertificates) > 0 {
			s.Certificate = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		b.requests <- s
		if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer refused") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	b.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that were not needed
	b.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	b.EnableHTTP2 = true
	b.StartTLS()
	t.Cleanup(b.Close)
	return b
}

func (b *backend) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw})
}

// ask sends a request and returns what the server saw.
func (b *backend) ask(t *testing.T, transport http.RoundTripper, header http.Header) (seen, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL+"/api/v1/pods?limit=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header.Clone()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return seen{}, err
	}
	_ = response.Body.Close()
	return <-b.requests, nil
}

// both returns the transports of the same configuration by yare and by client-go.
func both(t *testing.T, config *kube.Config) map[string]http.RoundTripper {
	t.Helper()
	ours, err := kube.NewRoundTripper(config)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := rest.TransportFor(clientgo.ToREST(config))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]http.RoundTripper{"yare": ours, "client-go": theirs}
}

// certificate returns a client certificate and its key in PEM.
func certificate(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRequestsAreThoseOfClientGo sends a request with each kind of credentials.
func TestRequestsAreThoseOfClientGo(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	folder := t.TempDir()
	cert, key := certificate(t, "ahab")
	certFile, keyFile := write(t, filepath.Join(folder, "cert"), cert), write(t, filepath.Join(folder, "key"), key)
	tokenFile := write(t, filepath.Join(folder, "token"), []byte(" from-file\n"))
	caFile := write(t, filepath.Join(folder, "ca"), b.ca())
	for name, change := range map[string]func(*kube.Config){
		"anonymous":          func(*kube.Config) {},
		"user agent":         func(c *kube.Config) { c.UserAgent = "mine/1" },
		"token":              func(c *kube.Config) { c.BearerToken = "t" },
		"token file":         func(c *kube.Config) { c.BearerTokenFile = tokenFile },
		"token and file":     func(c *kube.Config) { c.BearerToken, c.BearerTokenFile = "t", tokenFile },
		"token, no file":     func(c *kube.Config) { c.BearerToken, c.BearerTokenFile = "t", "/does/not/exist" },
		"password":           func(c *kube.Config) { c.Username, c.Password = "u", "p:q" },
		"user name":          func(c *kube.Config) { c.Username = "u" },
		"certificate":        func(c *kube.Config) { c.CertData, c.KeyData = cert, key },
		"certificate files":  func(c *kube.Config) { c.CertFile, c.KeyFile = certFile, keyFile },
		"mixed certificate":  func(c *kube.Config) { c.CertFile, c.KeyData = certFile, key },
		"data before files":  func(c *kube.Config) { c.CertFile, c.KeyFile, c.CertData, c.KeyData = "/none", "/none", cert, key },
		"certificate, token": func(c *kube.Config) { c.CertData, c.KeyData, c.BearerToken = cert, key, "t" },
		"CA file":            func(c *kube.Config) { c.CAData, c.CAFile = nil, caFile },
		"insecure":           func(c *kube.Config) { c.CAData, c.Insecure = nil, true },
		"server name":        func(c *kube.Config) { c.ServerName = "example.com" },
		"uncompressed":       func(c *kube.Config) { c.DisableCompression = true },
		"impersonation":      func(c *kube.Config) { c.Impersonate.UserName = "u" },
		"groups":             func(c *kube.Config) { c.Impersonate.UserName, c.Impersonate.Groups = "u", []string{"g", "system:h"} },
		"all of impersonation": func(c *kube.Config) {
			c.Impersonate = kube.Impersonation{UserName: "u", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{
				"a": {"b", "c"}, "example.com/scopes %ü": {"x y"}, "!#$&'*+-.^_`|~(": {""},
			}}
		},
		"wrapped": func(c *kube.Config) {
			c.BearerToken, c.UserAgent = "t", "mine/1"
			c.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
				return roundTripperFunc(func(r *http.Request) (*http.Response, error) {
					r = r.Clone(r.Context())
					r.Header.Set("Saw", r.Header.Get("Authorization")+r.Header.Get("User-Agent"))
					return next.RoundTrip(r)
				})
			}
		},
	} {
		config := &kube.Config{Host: b.URL, CAData: b.ca()}
		change(config)
		for _, header := range []http.Header{{}, {"Authorization": {"Bearer own"}}, {"User-Agent": {"own"}}, {"Impersonate-User": {"own"}}} {
			saw := map[string]seen{}
			for who, transport := range both(t, config) {
				s, err := b.ask(t, transport, header)
				if err != nil {
					t.Errorf("%s by %s: %v", name, who, err)
				}
				saw[who] = s
			}
			if diff := cmp.Diff(saw["client-go"], saw["yare"]); diff != "" {
				t.Errorf("%s with %v: the server saw another request than from client-go (-):\n%s", name, header, diff)
			}
			if saw["yare"].Major != 2 {
				t.Errorf("%s: over HTTP/%d", name, saw["yare"].Major)
			}
		}
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestConfigurationsThatClientGoRefuses checks that what client-go refuses is an error here too.
func TestConfigurationsThatClientGoRefuses(t *testing.T) {
	t.Parallel()
	cert, _ := certificate(t, "ahab")
	_, otherKey := certificate(t, "other")
	for name, config := range map[string]*kube.Config{
		"token and password":   {BearerToken: "t", Username: "u"},
		"CA and insecure":      {CAData: cert, Insecure: true},
		"missing CA":           {CAFile: "/does/not/exist"},
		"no CA":                {CAData: []byte("x")},
		"another key":          {CertData: cert, KeyData: otherKey},
		"missing certificate":  {CertFile: "/does/not/exist", KeyFile: "/does/not/exist"},
		"missing token":        {BearerTokenFile: "/does/not/exist"},
		"unknown exec version": {Exec: &kube.ExecConfig{Command: "c", APIVersion: "client.authentication.k8s.io/v1alpha1", InteractiveMode: kube.InteractiveNever}},
	} {
		config.Host = "https://host.example.com"
		if _, err := rest.TransportFor(clientgo.ToREST(config)); err == nil && name != "missing certificate" {
			t.Errorf("%s: client-go accepts it", name)
		}
		if _, err := kube.NewRoundTripper(config); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

// TestProxiesAreThoseOfClientGo sends a request through a proxy that wants a password.
func TestProxiesAreThoseOfClientGo(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	connects := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connects <- r.Method + " " + r.Host + " " + r.Header.Get("Proxy-Authorization")
		to, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		from, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = from.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		go func() { _, _ = io.Copy(to, buffered); to.Close() }()
		go func() { _, _ = io.Copy(from, to); from.Close() }()
	}))
	t.Cleanup(proxy.Close)
	through, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	through.User = url.UserPassword("u", "p")
	config := &kube.Config{Host: b.URL, CAData: b.ca(), Proxy: http.ProxyURL(through), BearerToken: "t"}
	var saw []string
	for who, transport := range both(t, config) {
		if _, err := b.ask(t, transport, http.Header{}); err != nil {
			t.Errorf("by %s: %v", who, err)
			continue
		}
		saw = append(saw, <-connects)
		closeIdle(transport)
	}
	if len(saw) != 2 || saw[0] != saw[1] || !strings.HasPrefix(saw[0], "CONNECT ") {
		t.Errorf("the proxy saw %q", saw)
	}
}

func closeIdle(transport http.RoundTripper) {
	for {
		switch t := transport.(type) {
		case interface{ CloseIdleConnections() }:
			t.CloseIdleConnections()
			return
		case interface{ WrappedRoundTripper() http.RoundTripper }:
			transport = t.WrappedRoundTripper()
		default:
			return
		}
	}
}

// plugin is a credential plugin whose outputs are files: 1 for its first run, and so on. The
// last output is repeated.
type plugin struct{ folder, path string }

func newPlugin(t *testing.T, outputs ...string) plugin {
	t.Helper()
	p := plugin{folder: t.TempDir()}
	for i, output := range outputs {
		write(t, filepath.Join(p.folder, fmt.Sprint(i+1)), []byte(output))
	}
	p.path = filepath.Join(p.folder, "plugin")
	script := fmt.Sprintf(`#!/bin/sh
cd %q
echo "$KUBERNETES_EXEC_INFO" >> infos
echo "$* $MORE" >> args
n=$(($(wc -l < args)))
while [ ! -e $n ]; do n=$((n - 1)); done
cat $n
`, p.folder)
	if err := os.WriteFile(p.path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

// lines returns the lines of a file that the plugin wrote.
func (p plugin) lines(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
}

// credential returns the ExecCredential with a status.
func credential(t *testing.T, version string, status map[string]any) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/" + version, "kind": "ExecCredential", "status": status})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPluginsRunAsWithClientGo sends three requests with each plugin, and compares what the
// server and the plugin saw. One case is left out: if a certificate expires between the request
// and its handshake, client-go cuts the connection that it is making, and yare does not.
func TestPluginsRunAsWithClientGo(t *testing.T) {
	t.Parallel()
	cert1, key1 := certificate(t, "one")
	cert2, key2 := certificate(t, "two")
	past, future := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	type status = map[string]any
	withCert := func(cert, key []byte, more status) status {
		more["clientCertificateData"], more["clientKeyData"] = string(cert), string(key)
		return more
	}
	for name, test := range map[string]struct {
		version  string
		statuses []status
		config   func(*kube.Config)
	}{
		"token":                       {statuses: []status{{"token": "a"}, {"token": "b"}}},
		"beta":                        {version: "v1beta1", statuses: []status{{"token": "a"}}},
		"that expires":                {statuses: []status{{"token": "a", "expirationTimestamp": past}, {"token": "b", "expirationTimestamp": future}, {"token": "c"}}},
		"that is refused":             {statuses: []status{{"token": "refused"}, {"token": "b"}, {"token": "c"}}},
		"certificate":                 {statuses: []status{withCert(cert1, key1, status{}), {"token": "b"}}},
		"certificate that is refused": {statuses: []status{withCert(cert1, key1, status{"token": "refused"}), withCert(cert2, key2, status{"token": "b"})}},
		"certificate after a token":   {statuses: []status{{"token": "refused"}, withCert(cert2, key2, status{})}},
		"cluster info":                {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) { c.Exec.ProvideClusterInfo = true; c.DisableCompression = true }},
		"cluster info with settings": {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) {
			c.Exec.ProvideClusterInfo, c.Exec.ClusterConfig = true, []byte(`{"audience":"x"}`)
		}},
		"beside a token":            {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) { c.BearerToken = "own" }},
		"beside a certificate":      {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) { c.CertData, c.KeyData = cert1, key1 }},
		"interactive":               {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) { c.Exec.InteractiveMode = kube.InteractiveIfAvailable }},
		"without a status":          {statuses: []status{nil}},
		"without credentials":       {statuses: []status{{}}},
		"certificate without a key": {statuses: []status{{"clientCertificateData": string(cert1)}}},
		"no certificate":            {statuses: []status{{"clientCertificateData": "x", "clientKeyData": "y"}}},
		"always interactive":        {statuses: []status{{"token": "a"}}, config: func(c *kube.Config) { c.Exec.InteractiveMode = kube.InteractiveAlways }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			version := test.version
			if version == "" {
				version = "v1"
			}
			var outputs []string
			for _, s := range test.statuses {
				outputs = append(outputs, credential(t, version, s))
			}
			type record struct {
				Requests []string
				Errors   int
				Infos    []any
				Args     []string
			}
			records := map[string]record{}
			for _, who := range []string{"yare", "client-go"} {
				p := newPlugin(t, outputs...)
				config := &kube.Config{Host: b.URL, CAData: b.ca(), Exec: &kube.ExecConfig{
					Command: p.path, Args: []string{"x", "y z"}, Env: []string{"MORE=m=n"}, APIVersion: "client.authentication.k8s.io/" + version,
					InteractiveMode: kube.InteractiveNever,
				}}
				if test.config != nil {
					test.config(config)
				}
				transport := both(t, config)[who]
				var r record
				for range 3 {
					s, err := b.ask(t, transport, http.Header{})
					if err != nil {
						r.Errors++
						continue
					}
					r.Requests = append(r.Requests, s.Header.Get("Authorization")+" "+s.Certificate)
				}
				if _, err := os.Stat(filepath.Join(p.folder, "infos")); err == nil {
					for _, line := range p.lines(t, "infos") {
						var info any
						if err := json.Unmarshal([]byte(line), &info); err != nil {
							t.Fatal(err)
						}
						r.Infos = append(r.Infos, info)
					}
					r.Args = p.lines(t, "args")
				}
				records[who] = r
				closeIdle(transport)
			}
			if diff := cmp.Diff(records["client-go"], records["yare"]); diff != "" {
				t.Errorf("differs from client-go (-):\n%s", diff)
			}
			if name == "that is refused" && len(records["yare"].Infos) != 2 {
				t.Errorf("the plugin ran %d times", len(records["yare"].Infos))
			}
		})
	}
}

// TestPluginFails checks the errors of plugins that do not work, and that what they print stays
// secret.
func TestPluginFails(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	fails := filepath.Join(t.TempDir(), "fails")
	if err := os.WriteFile(fails, []byte("#!/bin/sh\necho secret; exit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		exec kube.ExecConfig
		want []string
	}{
		"missing":         {kube.ExecConfig{Command: "/does/not/exist", InstallHint: "Install it by\nhand."}, []string{"/does/not/exist", "no such file", "Install it by\nhand."}},
		"missing in PATH": {kube.ExecConfig{Command: "does-not-exist-anywhere", InstallHint: "Install it."}, []string{"does-not-exist-anywhere", "not found in $PATH", "Install it."}},
		"fails":           {kube.ExecConfig{Command: fails, InstallHint: "Install it."}, []string{fails, "exit status 3"}},
		"other text":      {kube.ExecConfig{Command: newPlugin(t, "secret").path}, []string{"no ExecCredential"}},
		"broken JSON":     {kube.ExecConfig{Command: newPlugin(t, `{"secret`).path}, []string{"no ExecCredential"}},
		"other version":   {kube.ExecConfig{Command: newPlugin(t, credential(t, "v1beta1", map[string]any{"token": "secret"})).path}, []string{"v1beta1", "not an ExecCredential of client.authentication.k8s.io/v1"}},
		"other kind":      {kube.ExecConfig{Command: newPlugin(t, `{"kind":"Secret","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"secret"}}`).path}, []string{`"Secret"`}},
		"no credentials":  {kube.ExecConfig{Command: newPlugin(t, credential(t, "v1", map[string]any{})).path}, []string{"neither a token nor a client certificate"}},
		"always":          {kube.ExecConfig{Command: fails, InteractiveMode: kube.InteractiveAlways}, []string{"needs a terminal"}},
	} {
		test.exec.APIVersion = "client.authentication.k8s.io/v1"
		if test.exec.InteractiveMode == "" {
			test.exec.InteractiveMode = kube.InteractiveNever
		}
		for who, transport := range both(t, &kube.Config{Host: b.URL, CAData: b.ca(), Exec: &test.exec}) {
			_, err := b.ask(t, transport, http.Header{})
			if err == nil {
				t.Errorf("%s by %s: no error", name, who)
			}
			for _, want := range test.want {
				if who == "yare" && err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
					t.Errorf("%s: the error is %v, without %q", name, err, want)
				}
			}
		}
	}
}

// TestPluginRunsOnceForRequestsAtATime sends requests at the same time.
func TestPluginRunsOnceForRequestsAtATime(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := newPlugin(t, credential(t, "v1", map[string]any{"token": "a"}))
	transport, err := kube.NewRoundTripper(&kube.Config{Host: b.URL, CAData: b.ca(), Exec: &kube.ExecConfig{
		Command: p.path, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: kube.InteractiveNever,
	}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 20 {
		go func() {
			_, err := b.ask(t, transport, http.Header{})
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := len(p.lines(t, "infos")); n != 1 {
		t.Errorf("the plugin ran %d times", n)
	}
}

// TestPluginEndsWithItsCaller checks that a plugin that hangs ends with the context of the
// request, and that another request waits for it no longer than its own context.
func TestPluginEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	hangs := filepath.Join(t.TempDir(), "hangs")
	started := filepath.Join(t.TempDir(), "started")
	if err := os.WriteFile(hangs, fmt.Appendf(nil, "#!/bin/sh\ntouch %q\nexec sleep 1000\n", started), 0o700); err != nil {
		t.Fatal(err)
	}
	transport, err := kube.NewRoundTripper(&kube.Config{Host: "https://192.0.2.1", Exec: &kube.ExecConfig{
		Command: hangs, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: kube.InteractiveNever,
	}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://192.0.2.1", nil)
		if err != nil {
			return err
		}
		response, err := transport.RoundTrip(request)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	first, cancelFirst := context.WithCancel(t.Context())
	firstDone := make(chan error, 1)
	go func() { firstDone <- send(first) }()
	for {
		if _, err := os.Stat(started); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	second, cancelSecond := context.WithCancel(t.Context())
	secondDone := make(chan error, 1)
	go func() { secondDone <- send(second) }()
	cancelSecond()
	if err := <-secondDone; err == nil {
		t.Error("the second request has an answer")
	}
	cancelFirst()
	if err := <-firstDone; err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("the first request: %v", err)
	}
}
