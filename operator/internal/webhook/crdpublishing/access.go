package crdpublishing

import (
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// Access returns the permissions that a [Publisher] needs for the CustomResourceDefinitions of these names. The
// Namespace of another installation can have any name.
func Access(names []string) []kube.Access {
	return []kube.Access{
		{
			Resource: manifests.DefinitionResource(), Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch, wire.VerbPatch},
			Names: names,
		},
		{Resource: manifests.NamespaceResource(), Verbs: []wire.Verb{wire.VerbGet}},
	}
}
