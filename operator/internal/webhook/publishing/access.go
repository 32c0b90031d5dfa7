package publishing

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Access returns the permissions that a [Publisher] needs for the configurations of a name and the Namespace of the
// installation, which may be empty. All are by name. A configuration that the program does not need is followed too,
// because an earlier release may have left entries in it, and is never created. [Publisher.Remove] also needs the verb
// delete. Only development and tests call it.
func Access(name, namespace string, hasValidators, hasDefaulters bool) []kube.Access {
	var all []kube.Access
	for kind, isNeeded := range []bool{hasValidators, hasDefaulters} {
		verbs := []wire.Verb{wire.VerbList, wire.VerbWatch, wire.VerbPatch}
		if isNeeded {
			verbs = append(verbs, wire.VerbCreate)
		}
		all = append(all, kube.Access{Resource: configurations()[kind], Verbs: verbs, Names: []string{name}})
	}
	if namespace != "" {
		all = append(all, kube.Access{Resource: namespaces(), Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch}, Names: []string{namespace}})
	}
	return all
}

// configurations returns the resources of the configurations of validators and of defaulters.
func configurations() [2]wire.Resource {
	group := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	return [2]wire.Resource{
		{GroupVersionKind: group.WithKind("ValidatingWebhookConfiguration"), Plural: "validatingwebhookconfigurations", ClusterScoped: true},
		{GroupVersionKind: group.WithKind("MutatingWebhookConfiguration"), Plural: "mutatingwebhookconfigurations", ClusterScoped: true},
	}
}

// namespaces returns the resource of Namespaces.
func namespaces() wire.Resource {
	return wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces", ClusterScoped: true}
}
