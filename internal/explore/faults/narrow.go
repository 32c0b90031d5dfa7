package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// narrow changes the URL of a list or a watch of all namespaces to the URL of the run's namespace. It
// returns an answer if the request must not be sent.
func (p *Proxy) narrow(ctx context.Context, e *exchange, target *url.URL) (metav1.Status, bool) {
	r := e.parsed
	if p.options.Namespace == "" || r.Resource == "" || r.Namespace != "" || r.Name != "" || r.Verb != kube.VerbList && r.Verb != kube.VerbWatch {
		return metav1.Status{}, false
	}
	if r.Resource == "namespaces" {
		query := target.Query()
		query.Set("fieldSelector", narrowNames(query.Get("fieldSelector"), p.options.Namespace))
		target.RawQuery = query.Encode()
		return metav1.Status{}, false
	}
	version, plural := path.Split(target.Path)
	scope, err := p.scopes.scopeOf(ctx, version, plural)
	switch {
	case err != nil:
		return newStatus(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error()), true
	case scope == unknownScope:
		// The server may serve a resource before its discovery lists the resource.
		return newStatus(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource"), true
	case scope == namespaceScope:
		target.Path, target.RawPath = fmt.Sprintf("%snamespaces/%s/%s", version, p.options.Namespace, plural), ""
	}
	return metav1.Status{}, false
}

// narrowNames returns a field selector with the terms of another one, and with a term that selects a name. It
// returns a selector that has such a term unchanged, because reads of one other object are allowed.
func narrowNames(selector, name string) string {
	const field = "metadata.name="
	terms := strings.Split(selector, ",")
	if slices.ContainsFunc(terms, func(term string) bool { return strings.HasPrefix(term, field) }) {
		return selector
	}
	return strings.TrimPrefix(selector+","+field+name, ",")
}

// scope is whether objects of a resource are in namespaces.
type scope int

const (
	unknownScope scope = iota
	clusterScope
	namespaceScope
)

// scopes holds the scopes of resources, from the discovery of a server.
type scopes struct {
	server *server

	mu sync.Mutex
	// known holds scopes by the path of a resource.
	known map[string]scope
}

// scopeOf returns the scope of a resource in the version of an API group that a path such as
// /apis/apps/v1/ names. The scope is unknown if the server does not serve the resource.
func (s *scopes) scopeOf(ctx context.Context, version, plural string) (scope, error) {
	s.mu.Lock()
	known := s.known[version+plural]
	s.mu.Unlock()
	if known != unknownScope {
		return known, nil
	}
	var list metav1.APIResourceList
	if _, err := s.server.get(ctx, path.Clean(version), nil, &list); err != nil {
		return unknownScope, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]scope{}
	}
	for _, r := range list.APIResources {
		s.known[version+r.Name] = clusterScope
		if r.Namespaced {
			s.known[version+r.Name] = namespaceScope
		}
	}
	return s.known[version+plural], nil
}
