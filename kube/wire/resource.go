package wire

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
)

// Resource identifies a kind as URLs need it. It is comparable.
type Resource struct {
	schema.GroupVersionKind
	// Plural is the name in URLs, such as deployments.
	Plural string
	// ClusterScoped is true for a resource outside of namespaces.
	ClusterScoped bool
}

// GroupResource returns the resource without its version, as RBAC and errors name it.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// IsSecret reports whether r is the resource of Secrets. Their contents are neither kept nor
// shown unless the program asks for them.
func (r Resource) IsSecret() bool { return r.Group == "" && r.Plural == "secrets" }

// String returns the name that kubectl uses, such as deployments.apps.
//
//go:noinline
func (r Resource) String() string { return r.GroupResource().String() }

// Ref names one object. Cluster is always empty today, which means the home cluster. An empty UID means any
// object of that name.
type Ref struct {
	Cluster   string
	Resource  Resource
	Namespace string
	Name      string
	UID       types.UID
}

// String returns the resource and the name, as kubectl would write them.
func (r Ref) String() string {
	return r.Resource.String() + " " + ident.Quoted(r.Namespace, r.Name)
}
