package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// NewRoundTripper returns a RoundTripper that sends requests with the TLS settings and the credentials of
// config. It is for code that speaks HTTP itself. The RoundTripper shares its connections with no client.
// Its method CloseIdleConnections closes the connections that are not in use. It is safe for concurrent
// use.
//
// A header Authorization, User-Agent or Impersonate-User that a request has already is not changed.
func NewRoundTripper(config *Config) (http.RoundTripper, error) {
	if config == nil {
		return nil, errors.New("the configuration is nil: load one with kube.ConfigSource")
	}
	return newRoundTripper(config.Clone())
}

// roundTripper adds the credentials of a configuration to requests.
type roundTripper struct {
	config *Config
	// next sends requests: connections, or what WrapTransport put around them.
	next        http.RoundTripper
	connections *connections
	// exec is nil if no program prints the credentials.
	exec *pluginRunner
	// token is nil if the token is not in a file.
	token  *tokenFile
	header http.Header
}

// newRoundTripper returns a roundTripper of config, which it keeps.
func newRoundTripper(config *Config) (*roundTripper, error) {
	if config.hasToken() && config.hasBasicAuth() {
		return nil, errors.New("the configuration has both a token and a user name: remove one of them")
	}
	t := &roundTripper{config: config, header: impersonationHeader(config.Impersonate)}
	if config.hasExec() {
		exec, err := newPluginRunner(config)
		if err != nil {
			return nil, err
		}
		t.exec = exec
	}
	if config.BearerTokenFile != "" {
		t.token = &tokenFile{path: config.BearerTokenFile, fallback: config.BearerToken}
		if _, err := t.token.get(); err != nil {
			return nil, err
		}
	}
	var err error
	if t.connections, err = newConnections(config, t.exec); err != nil {
		return nil, err
	}
	if t.exec != nil {
		t.exec.onRotation = t.connections.replaceTransport
	}
	t.next = t.connections
	if config.WrapTransport != nil {
		t.next = config.WrapTransport(t.connections)
	}
	return t, nil
}

// CloseIdleConnections closes the connections that are not in use.
func (t *roundTripper) CloseIdleConnections() { t.connections.CloseIdleConnections() }

// prepare runs the credential plugin if a request needs new credentials. The plugin runs within
// pause.
func (t *roundTripper) prepare(ctx context.Context, pause func(func())) (err error) {
	if t.exec == nil {
		return nil
	}
	if _, ok := t.exec.current(); !ok {
		pause(func() { _, err = t.exec.get(ctx) })
	}
	return err
}

// RoundTrip sends a copy of the request with the credentials of the configuration.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if t.config.UserAgent != "" && r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", t.config.UserAgent)
	}
	if r.Header.Get("Impersonate-User") == "" {
		maps.Copy(r.Header, t.header)
	}
	if r.Header.Get("Authorization") != "" {
		return t.next.RoundTrip(r)
	}
	var used *pluginCredentials
	switch {
	case t.token != nil:
		token, err := t.token.get()
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	case t.config.BearerToken != "":
		r.Header.Set("Authorization", "Bearer "+t.config.BearerToken)
	case t.config.hasBasicAuth():
		r.SetBasicAuth(t.config.Username, t.config.Password)
	case t.exec != nil:
		var err error
		if used, err = t.exec.get(r.Context()); err != nil {
			return nil, err
		}
		if used.token != "" {
			r.Header.Set("Authorization", "Bearer "+used.token)
		}
	}
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized && used != nil {
		t.exec.expire(used)
	}
	return response, err
}

// impersonationHeader returns the header that names the user to impersonate.
func impersonationHeader(i Impersonation) http.Header {
	header := http.Header{}
	if i.UserName == "" && i.UID == "" && len(i.Groups) == 0 && len(i.Extra) == 0 {
		return header
	}
	header.Set("Impersonate-User", i.UserName)
	if i.UID != "" {
		header.Set("Impersonate-Uid", i.UID)
	}
	for _, group := range i.Groups {
		header.Add("Impersonate-Group", group)
	}
	for name, values := range i.Extra {
		for _, value := range values {
			header.Add("Impersonate-Extra-"+escapeHeaderName(name), value)
		}
	}
	return header
}

// escapeHeaderName returns name with %XX in place of each byte that may not stand in the name
// of a header (RFC 9110, section 5.6.2), and in place of %. The API server unescapes the name.
func escapeHeaderName(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$&'*+-.^_`|~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
