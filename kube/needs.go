package kube

import (
	"time"

	"github.com/yare-go/yare/kube/wire"
)

// Needs describes what one part of a program requires from the cluster and from the program
// around it. Definitions, permissions and the order of the start follow from it.
type Needs struct {
	// Controllers are the names of the controllers of the part. No two controllers of a program may share one. A program
	// is ready once each of its controllers has subscribed to its streams.
	Controllers []string
	// FieldManagers are the field managers of the part's applies. No two parts of a program
	// may share one, because they would remove each other's fields.
	FieldManagers []string
	// Defines holds the custom resources whose types have a Definition. The program brings
	// their CustomResourceDefinitions, except for a Definition that is Foreign.
	Defines []Type
	// Reconciles holds the resources whose objects the part reconciles. These objects can have Finalizers.
	Reconciles []wire.Resource
	// OwnerLabels are the labels whose values are the uids of owners: see [OwnedByLabel]. All clients of the program
	// refuse an apply that would make somebody else's object a child by such a label: see [ErrForeignChild].
	OwnerLabels []string
	// Access holds the permissions that the part needs on resources.
	Access []Access
	// Finalizers are the finalizers that the part removes from objects: those that it adds, and those of
	// earlier versions of the program.
	Finalizers []string
	// AddedFinalizers are those of Finalizers that the part adds to the objects that it Reconciles. No other part that
	// reconciles the same resource may remove them, because the cleanups of the parts would not wait for one another.
	AddedFinalizers []string
	// EveryReplica is true for a part that starts on every replica of a program with leader election, before the
	// replica leads. A part without EveryReplica starts when its replica leads. Controllers have it: they sync their
	// streams before the election, and reconcile after it.
	EveryReplica bool
	// Service is true for a part that other parts use while they run, such as a recorder of events. A service runs
	// on every replica. Its context ends when all parts that are no services have ended, and the program then waits
	// for it. The end of a service does not end the program.
	Service bool
	// ShutdownTime is how long the part may take at most to end when its context ends. Zero means that
	// the part ends at once.
	ShutdownTime time.Duration
	// Rules are permissions that Access cannot express, such as for a URL without a resource.
	Rules []PolicyRule
}

// Access describes permissions that a part needs: verbs on a resource, in the namespaces of the program.
// For a resource outside of namespaces Namespaces is empty, and OwnNamespace false.
type Access struct {
	Resource    wire.Resource
	Subresource string
	Verbs       []wire.Verb
	// Names narrows the permissions to the objects of these names. If Names is empty, the permissions are
	// for all objects. RBAC cannot narrow a deletecollection by name, and a create only if it is an apply
	// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources).
	Names []string
	// Namespaces are the namespaces in which the part needs the permissions, also if the program watches
	// other namespaces.
	Namespaces []string
	// OwnNamespace is true if the part needs the permissions in the namespace that the program is
	// installed in, such as for its Lease. Then Namespaces is empty.
	OwnNamespace bool
}

// PolicyRule is a rule of a Role or a ClusterRole, with the fields of
// rbac.authorization.k8s.io/v1. Only here can a wildcard stand.
type PolicyRule struct {
	APIGroups       []string `json:"apiGroups,omitempty"`
	Resources       []string `json:"resources,omitempty"`
	Verbs           []string `json:"verbs"`
	ResourceNames   []string `json:"resourceNames,omitempty"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
}
