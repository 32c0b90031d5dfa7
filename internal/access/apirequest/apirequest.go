// Package apirequest parses HTTP requests to an API server, for proxies.
package apirequest

import (
	"net/http"
	"strings"

	"github.com/yare-go/yare/kube"
)

// Request is what the method and the URL of an HTTP request mean in Kubernetes.
type Request struct {
	Verb kube.Verb
	// Resource is the plural name and the group, such as deployments.apps. It is empty if the
	// path is not that of a resource.
	Resource    string
	Subresource string
	Namespace   string
	// Name is the name in the path. The path of a create has none.
	Name string
}

// Parse returns the meaning of a request.
func Parse(r *http.Request) Request {
	var parsed Request
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var group string
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = parts[1], parts[3:]
	default:
		parts = nil
	}
	// A namespace is a resource itself, and so are its subresources.
	inside := len(parts) > 2 && parts[0] == "namespaces" && !(len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize"))
	if inside {
		parsed.Namespace, parts = parts[1], parts[2:]
	}
	for i, to := range []*string{&parsed.Resource, &parsed.Name, &parsed.Subresource} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	if group != "" {
		parsed.Resource += "." + group
	}
	parsed.Verb = verbOf(r, parsed.Name)
	return parsed
}

func verbOf(r *http.Request, name string) kube.Verb {
	switch r.Method {
	case http.MethodPost:
		return kube.VerbCreate
	case http.MethodPut:
		return kube.VerbUpdate
	case http.MethodPatch:
		return kube.VerbPatch
	case http.MethodDelete:
		if name == "" {
			return kube.VerbDeleteCollection
		}
		return kube.VerbDelete
	}
	watch := r.URL.Query().Get("watch")
	switch {
	case watch == "true" || watch == "1":
		return kube.VerbWatch
	case name != "":
		return kube.VerbGet
	default:
		return kube.VerbList
	}
}
