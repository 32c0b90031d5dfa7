package wire

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
)

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
