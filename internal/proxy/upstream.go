package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Upstream sends requests to an API server.
type Upstream struct {
	url       *url.URL
	transport http.RoundTripper
	// upgrades sends the requests that become connections of another protocol.
	upgrades http.RoundTripper
}

// NewUpstream returns an upstream whose requests have the rights of a configuration.
func NewUpstream(config *kube.Config) (*Upstream, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("the address of the API server: %w", err)
	}
	if target.Host == "" {
		return nil, fmt.Errorf("the address of the API server is %q: give a URL", config.Host)
	}
	config = config.Clone()
	config.DisableCompression = true // the proxy reads answers
	transport, err := kube.NewRoundTripper(config)
	if err != nil {
		return nil, err
	}
	upgrades, err := newUpgradeTransport(config)
	if err != nil {
		return nil, err
	}
	return &Upstream{url: target, transport: transport, upgrades: upgrades}, nil
}

// RoundTrip sends a request of a program, whose URL has no host.
func (u *Upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	(&httputil.ProxyRequest{In: r, Out: out}).SetURL(u.url)
	if out.Header.Get("Upgrade") != "" {
		return u.upgrades.RoundTrip(out)
	}
	return u.transport.RoundTrip(out)
}

// CloseIdleConnections closes the connections without a request.
func (u *Upstream) CloseIdleConnections() {
	if idle, ok := u.transport.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}

// send sends a request of the proxy itself. It returns the status and the body of an answer whose status is 200 or
// among others. All other statuses are errors.
func (u *Upstream) send(
	ctx context.Context, method, path string, query url.Values, patch []byte, others ...int,
) (int, []byte, error) {
	target := u.url.JoinPath(path)
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(patch))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Accept", wire.ContentJSON)
	if patch != nil {
		request.Header.Set("Content-Type", wire.ContentMergePatch)
	}
	response, err := u.transport.RoundTrip(request)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if code := response.StatusCode; code != http.StatusOK && !slices.Contains(others, code) {
		return 0, nil, fmt.Errorf("%s %s: the API server answers %d: %s",
			method, path, code, strings.TrimSpace(string(answer)))
	}
	return response.StatusCode, answer, nil
}

// Get reads JSON. It reports whether the path exists.
func (u *Upstream) Get(ctx context.Context, path string, query url.Values, into any) (bool, error) {
	code, answer, err := u.send(ctx, http.MethodGet, path, query, nil, http.StatusNotFound)
	if err != nil || code == http.StatusNotFound {
		return false, err
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return false, fmt.Errorf("get %s: %w", path, err)
	}
	return true, nil
}

// Patch sends a merge patch as a field manager. It reports whether the object exists.
func (u *Upstream) Patch(ctx context.Context, path, manager string, patch any) (bool, error) {
	body, err := kube.Marshal(patch)
	if err != nil {
		return false, err
	}
	code, _, err := u.send(ctx, http.MethodPatch, path, url.Values{"fieldManager": {manager}}, body, http.StatusNotFound)
	return err == nil && code == http.StatusOK, err
}

// Remove deletes an object, and removes the finalizers that would keep the object.
func (u *Upstream) Remove(ctx context.Context, path string) error {
	code, _, err := u.send(ctx, http.MethodDelete, path, nil, nil, http.StatusAccepted, http.StatusNotFound)
	if err != nil || code == http.StatusNotFound {
		return err
	}
	// A conflict means that the object is gone.
	_, _, err = u.send(ctx, http.MethodPatch, path, nil, []byte(`{"metadata":{"finalizers":null}}`),
		http.StatusNotFound, http.StatusConflict)
	return err
}

// newUpgradeTransport returns the transport of requests that become connections of another protocol. The command exec
// uses WebSockets or SPDY, and both need HTTP/1.1. By itself net/http chooses HTTP/1.1 for WebSockets, and not for
// SPDY. Each request has a connection of its own, which ends with the request.
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
