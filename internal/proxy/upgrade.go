package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/yare-go/yare/kube"
)

// newUpgradeTransport returns the transport of requests that become connections of another protocol. The
// protocols of exec need HTTP/1.1: WebSockets, for which net/http chooses HTTP/1.1 by itself, and SPDY, for
// which it does not. Each request has a connection of its own, which ends with the request.
func newUpgradeTransport(config *kube.Config) (http.RoundTripper, error) {
	settings, err := tlsConfigOf(config)
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	config = config.Clone()
	config.WrapTransport = func(http.RoundTripper) http.RoundTripper {
		return &http.Transport{
			Proxy: proxy, DialContext: config.Dial, TLSClientConfig: settings, Protocols: protocols, DisableKeepAlives: true,
		}
	}
	return kube.NewRoundTripper(config)
}

// tlsConfigOf returns the TLS settings of a configuration.
func tlsConfigOf(config *kube.Config) (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: config.ServerName, InsecureSkipVerify: config.Insecure}
	authorities, err := contentOf(config.CAData, config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the CA of the API server: %w", err)
	}
	if len(authorities) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, errors.New("the CA of the API server has no certificate in PEM")
		}
	}
	certificate, err := contentOf(config.CertData, config.CertFile)
	if err != nil {
		return nil, fmt.Errorf("read the client certificate: %w", err)
	}
	key, err := contentOf(config.KeyData, config.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the key of the client certificate: %w", err)
	}
	if len(certificate) > 0 {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("the client certificate: %w", err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// contentOf returns data, or else the content of a file, or nothing.
func contentOf(data []byte, file string) ([]byte, error) {
	if len(data) > 0 || file == "" {
		return data, nil
	}
	return os.ReadFile(file)
}
