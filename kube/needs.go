package kube

// Needs describes what one part of a program requires from the cluster and from the program
// around it. Definitions, permissions and the order of the start follow from it.
type Needs struct {
	// Names are what the part is called; no two parts of a program may share one.
	Names []string
	// FieldManagers are the names that the part applies under; no two parts of a program
	// may share one, because they would take each other's fields away.
	FieldManagers []string
	// Defines holds the custom resources whose types have a Definition. The program brings
	// their CustomResourceDefinitions, except those of a Definition that is Foreign.
	Defines []Type
	// Access is what the part does with which resource.
	Access []Access
}

// Access describes a permission that a part needs.
type Access struct {
	Resource    Resource
	Subresource string
	Verbs       []Verb
}
