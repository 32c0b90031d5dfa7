package proxy

import (
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/yare-go/yare/kube"
)

// newUpgradeTransport returns the transport of requests that become connections of another protocol. The command exec uses
// WebSockets or SPDY, and both need HTTP/1.1. By itself net/http chooses HTTP/1.1 for WebSockets, and not for SPDY. Each request
// has a connection of its own, which ends with the request.
func newUpgradeTransport(config *kube.Config) (http.RoundTripper, error) {
	settings, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		Insecure: config.Insecure, ServerName: config.ServerName, CAData: config.CAData, CAFile: config.CAFile,
		CertData: config.CertData, CertFile: config.CertFile, KeyData: config.KeyData, KeyFile: config.KeyFile,
	}})
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
