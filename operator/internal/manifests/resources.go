package manifests

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/wire"
)

// DefinitionResource returns the resource of CustomResourceDefinitions.
func DefinitionResource() wire.Resource {
	return wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		},
		Plural: "customresourcedefinitions", ClusterScoped: true,
	}
}

// NamespaceResource returns the resource of Namespaces.
func NamespaceResource() wire.Resource {
	return wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces",
		ClusterScoped: true,
	}
}

// WebhookConfigurationResources returns the resources of ValidatingWebhookConfigurations and
// MutatingWebhookConfigurations.
func WebhookConfigurationResources() [2]wire.Resource {
	r := wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{
			Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration",
		},
		Plural: "validatingwebhookconfigurations", ClusterScoped: true,
	}
	both := [2]wire.Resource{r, r}
	both[1].Kind, both[1].Plural = "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
	return both
}
