package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/yare-go/yare/kube"
)

// server sends requests to an API server.
type server struct {
	url       *url.URL
	transport http.RoundTripper
	// upgrades sends the requests that become connections of another protocol.
	upgrades http.RoundTripper
}

func newServer(config *kube.Config) (*server, error) {
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
	return &server{url: target, transport: transport, upgrades: upgrades}, nil
}

// RoundTrip sends a request of the program.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return s.upgrades.RoundTrip(r)
	}
	return s.transport.RoundTrip(r)
}

func (s *server) closeIdleConnections() {
	if idle, ok := s.transport.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}

// send sends a request of the proxy itself, and returns the status and the body of the answer.
func (s *server) send(ctx context.Context, method, path string, query url.Values, contentType string, body []byte) (int, []byte, error) {
	target := s.url.JoinPath(path)
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Accept", kube.ContentJSON)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// get reads JSON. It reports whether the path exists.
func (s *server) get(ctx context.Context, path string, query url.Values, into any) (bool, error) {
	code, answer, err := s.send(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return false, fmt.Errorf("get %s: %w", path, err)
	}
	switch code {
	case http.StatusNotFound:
		return false, nil
	case http.StatusOK:
		if err := json.Unmarshal(answer, into); err != nil {
			return false, fmt.Errorf("get %s: %w", path, err)
		}
		return true, nil
	}
	return false, fmt.Errorf("get %s: the API server answers %d: %s", path, code, strings.TrimSpace(string(answer)))
}

// presentVersion returns the version that all resources of the server have now.
func (s *server) presentVersion(ctx context.Context) (string, error) {
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	found, err := s.get(ctx, "/api/v1/namespaces", url.Values{"limit": {"1"}}, &list)
	if err != nil {
		return "", err
	}
	if !found || list.Metadata.ResourceVersion == "" {
		return "", errors.New("the API server returns no version of its namespaces")
	}
	return list.Metadata.ResourceVersion, nil
}

// foreignManager is the field manager of changes that the proxy makes as somebody else.
const foreignManager = "yare-explore"

// annotate changes an object as somebody else would. It reports whether the object exists.
func (s *server) annotate(ctx context.Context, path, value string) (bool, error) {
	patch, err := kube.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"explore.yare.dev/changed": value}}})
	if err != nil {
		return false, err
	}
	code, answer, err := s.send(ctx, http.MethodPatch, path, url.Values{"fieldManager": {foreignManager}}, kube.ContentMergePatch, patch)
	if err != nil {
		return false, fmt.Errorf("annotate %s: %w", path, err)
	}
	switch code {
	case http.StatusOK:
		return true, nil
	case http.StatusNotFound:
		return false, nil
	}
	return false, fmt.Errorf("annotate %s: the API server answers %d: %s", path, code, strings.TrimSpace(string(answer)))
}

// remove deletes an object, and removes the finalizers that would keep it.
func (s *server) remove(ctx context.Context, path string) error {
	code, answer, err := s.send(ctx, http.MethodDelete, path, nil, "", nil)
	if err != nil {
		return fmt.Errorf("delete %s: %w", path, err)
	}
	switch code {
	case http.StatusNotFound:
		return nil
	case http.StatusOK, http.StatusAccepted:
	default:
		return fmt.Errorf("delete %s: the API server answers %d: %s", path, code, strings.TrimSpace(string(answer)))
	}
	code, answer, err = s.send(ctx, http.MethodPatch, path, nil, kube.ContentMergePatch, []byte(`{"metadata":{"finalizers":null}}`))
	if err != nil {
		return fmt.Errorf("remove the finalizers of %s: %w", path, err)
	}
	switch code {
	case http.StatusOK, http.StatusNotFound, http.StatusConflict: // a conflict means that the object has ended
		return nil
	}
	return fmt.Errorf("remove the finalizers of %s: the API server answers %d: %s", path, code, strings.TrimSpace(string(answer)))
}
