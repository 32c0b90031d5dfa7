package operator

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
	"github.com/yare-go/yare/operator/internal/webhook/certificates"
)

// webhookAccess returns the permissions with which a program issues the certificates of its webhooks and publishes
// the webhooks. name is the name of the Service, and namespace is that of the program.
func webhookAccess(name, namespace string, webhooks []*admission.Webhook) []kube.Access {
	hasValidators, hasDefaulters := webhookRoles(webhooks)
	return append(publishingAccess(manifests.ClusterName(name, namespace), namespace, hasValidators, hasDefaulters), kube.Access{
		Resource: certificates.Resource(), Verbs: certificates.Verbs(), Names: []string{manifests.WebhookSecretName(name)}, OwnNamespace: true,
	})
}

// publishingAccess returns the permissions that keep the webhook configurations of a name, which belong to an
// installation in a namespace.
func publishingAccess(name, namespace string, hasValidators, hasDefaulters bool) []kube.Access {
	read := []wire.Verb{wire.VerbGet, wire.VerbList, wire.VerbWatch}
	write := []wire.Verb{wire.VerbCreate, wire.VerbPatch} // an apply, whose permission to create can name the object
	var all []kube.Access
	if hasValidators {
		all = append(all, kube.Access{Resource: manifests.ValidatingConfigurations(), Verbs: append(write, read...), Names: []string{name}})
	}
	if hasDefaulters {
		all = append(all, kube.Access{Resource: manifests.MutatingConfigurations(), Verbs: append(write, read...), Names: []string{name}})
	}
	namespaces := wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces", ClusterScoped: true}
	return append(all, kube.Access{Resource: namespaces, Verbs: read, Names: []string{namespace}})
}
