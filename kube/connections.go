package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// filePeriod is how often a client reads the CA and the client certificate again.
const filePeriod = 5 * time.Minute

// connections sends requests over connections with the TLS settings of a configuration. When
// the CA file or the client certificate has changed, later requests use new connections.
// Requests in flight end on their old connections.
type connections struct {
	config *Config
	// certificate returns the present certificate of the client. It is nil for a client without a certificate.
	certificate func(context.Context) (*tls.Certificate, error)
	now         func() time.Time

	mu     sync.Mutex
	latest *http.Transport
	// ca is the content of the CA file that latest trusts.
	ca []byte
	// chain is the client certificate of the files when they were last looked at.
	chain     [][]byte
	checkedAt time.Time
}

func newConnections(config *Config, exec *pluginRunner) (*connections, error) {
	if config.Insecure && config.hasCA() {
		return nil, errors.New(
			"the configuration has a CA and skips the check of the server's certificate: remove one of them")
	}
	if config.hasCert() != config.hasKey() {
		return nil, errors.New("the configuration has only one of a client certificate and its key: add the other")
	}
	c := &connections{config: config, now: time.Now}
	switch {
	case config.hasCertificate() && c.hasCertificateFile():
		c.certificate = func(context.Context) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("load the client certificate: %w", err)
			}
			return &pair, nil
		}
	case config.hasCertificate():
		pair, err := keyPair(config)
		if err != nil {
			return nil, err
		}
		c.certificate = func(context.Context) (*tls.Certificate, error) { return &pair, nil }
	case exec != nil:
		c.certificate = exec.certificate
	}
	var err error
	if c.ca, err = dataOrFile(config.CAData, config.CAFile); err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	if c.hasCertificateFile() {
		if c.chain, err = c.currentChain(); err != nil {
			return nil, err
		}
	}
	c.checkedAt = c.now()
	c.latest, err = c.newHTTPTransport()
	return c, err
}

func keyPair(config *Config) (tls.Certificate, error) {
	cert, err := dataOrFile(config.CertData, config.CertFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the client certificate: %w", err)
	}
	key, err := dataOrFile(config.KeyData, config.KeyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the key of the client certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("load the client certificate: %w", err)
	}
	return pair, nil
}

func dataOrFile(data []byte, file string) ([]byte, error) {
	if len(data) > 0 || file == "" {
		return data, nil
	}
	return os.ReadFile(file)
}

// hasCAFile reports whether the CA is in a file that can change.
func (c *connections) hasCAFile() bool { return c.config.CAFile != "" && len(c.config.CAData) == 0 }

// hasCertificateFile reports whether the client's certificate is in files that can change.
func (c *connections) hasCertificateFile() bool {
	return c.config.CertFile != "" && len(c.config.CertData) == 0 && c.config.KeyFile != "" && len(c.config.KeyData) == 0
}

// RoundTrip sends a request.
func (c *connections) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.latestTransport().RoundTrip(r)
}

// CloseIdleConnections closes the connections that are not in use.
func (c *connections) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest.CloseIdleConnections()
}

// sendsPings reports whether connections of HTTP/2 are checked by pings.
func (c *connections) sendsPings() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest.HTTP2.SendPingTimeout > 0
}

// latestTransport returns the transport for the next request. If [filePeriod] has passed, it reads the files again, and
// replaces the transport if they have changed.
func (c *connections) latestTransport() *http.Transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	if (c.hasCAFile() || c.hasCertificateFile()) && c.now().Sub(c.checkedAt) >= filePeriod {
		c.checkedAt = c.now()
		if c.rereadFilesLocked() {
			c.replaceLocked()
		}
	}
	return c.latest
}

// rereadFilesLocked reads the files again, and reports whether they have changed.
func (c *connections) rereadFilesLocked() bool {
	changed := false
	if c.hasCAFile() {
		ca, err := os.ReadFile(c.config.CAFile)
		if err == nil {
			_, err = c.rootsOf(ca)
		}
		if err != nil {
			slog.Error("cannot read the CA again: trusting the last one", "file", c.config.CAFile, "error", err)
		} else if !bytes.Equal(ca, c.ca) {
			c.ca, changed = ca, true
		}
	}
	if c.hasCertificateFile() {
		chain, err := c.currentChain()
		if err != nil {
			slog.Error("cannot read the client certificate again: keeping the connections", "error", err)
		} else if !slices.EqualFunc(chain, c.chain, bytes.Equal) {
			c.chain, changed = chain, true
		}
	}
	return changed
}

// currentChain returns the certificate chain in the files of the configuration.
func (c *connections) currentChain() ([][]byte, error) {
	certificate, err := c.certificate(context.Background())
	if err != nil {
		return nil, err
	}
	return certificate.Certificate, nil
}

// replaceTransport makes later requests use new connections.
func (c *connections) replaceTransport() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replaceLocked()
}

func (c *connections) replaceLocked() {
	next, err := c.newHTTPTransport()
	if err != nil { // c.ca was checked
		slog.Error("cannot renew the connections", "error", err)
		return
	}
	c.latest.CloseIdleConnections()
	c.latest = next
}

// newHTTPTransport returns a transport without connections.
func (c *connections) newHTTPTransport() (*http.Transport, error) {
	settings := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         c.config.ServerName,
		InsecureSkipVerify: c.config.Insecure,
	}
	if c.config.hasCA() {
		roots, err := c.rootsOf(c.ca)
		if err != nil {
			return nil, err
		}
		settings.RootCAs = roots
	}
	if c.certificate != nil {
		settings.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.certificate(r.Context())
		}
	}
	transport := &http.Transport{
		Proxy:               c.config.Proxy,
		DialContext:         c.config.Dial,
		TLSClientConfig:     settings,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 25,
		DisableCompression:  c.config.DisableCompression,
		ForceAttemptHTTP2:   true,
		// The windows are those of net/http. Larger windows would not make the client write less:
		// net/http returns credit after each read of 4 KB or more, however large the window is.
		// The size of the reads decides, see frameReader and BenchmarkWatchStream.
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: secondsOf("HTTP2_READ_IDLE_TIMEOUT_SECONDS", 30),
			PingTimeout:     secondsOf("HTTP2_PING_TIMEOUT_SECONDS", 15),
		},
	}
	if os.Getenv("DISABLE_HTTP2") != "" {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetHTTP1(true)
	}
	if transport.Proxy == nil {
		transport.Proxy = http.ProxyFromEnvironment
	}
	if transport.DialContext == nil {
		transport.DialContext = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return transport, nil
}

// rootsOf returns the certificates of the CA.
func (c *connections) rootsOf(ca []byte) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	if roots.AppendCertsFromPEM(ca) {
		return roots, nil
	}
	if c.hasCAFile() {
		return nil, fmt.Errorf("the CA file %s has no certificate in PEM", c.config.CAFile)
	}
	return nil, errors.New("the CA has no certificate in PEM")
}

// secondsOf returns the number of seconds in an environment variable, or usual if it has none. Programs
// that use client-go read the same variables.
func secondsOf(variable string, usual int) time.Duration {
	if text := os.Getenv(variable); text != "" {
		seconds, err := strconv.Atoi(text)
		if err == nil {
			return time.Duration(seconds) * time.Second
		}
		slog.Warn("the environment variable is no number of seconds: using the usual number", "variable", variable,
			"value", text, "seconds", usual)
	}
	return time.Duration(usual) * time.Second
}
