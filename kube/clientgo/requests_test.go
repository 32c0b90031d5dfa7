package clientgo_test

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/yare-go/yare/internal/testkit/testcert"
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
	return testcert.PEM(b.Certificate())
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
	cert, key := testcert.NewClient(t, "ahab")
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
	cert, _ := testcert.NewClient(t, "ahab")
	_, otherKey := testcert.NewClient(t, "other")
	for name, config := range map[string]*kube.Config{
		"token and password":   {BearerToken: "t", Username: "u"},
		"CA and insecure":      {CAData: cert, Insecure: true},
		"missing CA":           {CAFile: "/does/not/exist"},
		"no CA":                {CAData: []byte("x")},
		"another key":          {CertData: cert, KeyData: otherKey},
		"missing certificate":  {CertFile: "/does/not/exist", KeyFile: "/does/not/exist"},
		"missing token":        {BearerTokenFile: "/does/not/exist"},
		"unknown exec version": {Exec: &kube.ExecConfig{Command: "c", APIVersion: "client.authentication.k8s.io/v1alpha1", InteractiveMode: "Never"}},
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
