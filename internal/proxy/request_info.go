package proxy

import (
	"net/http"
	"strings"

	"github.com/yare-go/yare/kube/wire"
)

// Leases is the resource of the objects by which replicas elect their leader.
const Leases = "leases.coordination.k8s.io"

// RequestInfo is what the method and the URL of an HTTP request mean in Kubernetes.
type RequestInfo struct {
	Verb wire.Verb
	// Resource is the plural name and the group, such as deployments.apps. It is empty if the
	// path is not that of a resource.
	Resource    string
	Subresource string
	Namespace   string
	// Name is the name in the path. The path of a create has none.
	Name string
}

// ParseRequestInfo returns the meaning of a request.
func ParseRequestInfo(r *http.Request) RequestInfo {
	var info RequestInfo
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
	isInNamespace := len(parts) > 2 && parts[0] == "namespaces" &&
		!(len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize"))
	if isInNamespace {
		info.Namespace, parts = parts[1], parts[2:]
	}
	for i, to := range []*string{&info.Resource, &info.Name, &info.Subresource} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	if group != "" {
		info.Resource += "." + group
	}
	info.Verb = verbOf(r, info.Name)
	return info
}

// verbOf returns the verb of a request. name is the name in its path.
func verbOf(r *http.Request, name string) wire.Verb {
	switch r.Method {
	case http.MethodPost:
		return wire.VerbCreate
	case http.MethodPut:
		return wire.VerbUpdate
	case http.MethodPatch:
		return wire.VerbPatch
	case http.MethodDelete:
		if name == "" {
			return wire.VerbDeleteCollection
		}
		return wire.VerbDelete
	}
	watch := r.URL.Query().Get("watch")
	switch {
	case watch == "true" || watch == "1":
		return wire.VerbWatch
	case name != "":
		return wire.VerbGet
	default:
		return wire.VerbList
	}
}

// IsAboutObjects reports whether the request is about objects of a resource, and not about logs or
// a connection of another protocol.
func (i RequestInfo) IsAboutObjects() bool {
	switch i.Subresource {
	case "log", "exec", "attach", "portforward", "proxy":
		return false
	}
	return i.Resource != ""
}

// IsWatch reports whether the request is a watch of objects.
func (i RequestInfo) IsWatch() bool { return i.Verb == wire.VerbWatch && i.IsAboutObjects() }

// isStored reports whether the server changes something if it carries the request out.
func (i RequestInfo) isStored() bool {
	return i.Resource != "" && i.Verb.IsWrite() && !IsReview(i.Resource)
}

// IsBackground reports whether the objects of a resource change all the time.
func IsBackground(resource string) bool {
	switch resource {
	case Leases, "events", "events.events.k8s.io":
		return true
	}
	return false
}

// isAwaited reports whether the request must end before its program is at rest.
func (i RequestInfo) isAwaited() bool {
	return i.Verb != wire.VerbWatch && !IsBackground(i.Resource) && (i.IsAboutObjects() || i.Resource == "")
}

// IsReview reports whether a resource is one of the reviews. A review asks who somebody is, or what somebody may
// do. A create of a review stores nothing.
func IsReview(resource string) bool {
	_, group, _ := strings.Cut(resource, ".")
	return group == "authorization.k8s.io" || group == "authentication.k8s.io"
}
