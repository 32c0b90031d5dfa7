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

// webhookRoles reports which kinds of webhooks there are.
func webhookRoles(webhooks []*admission.Webhook) (hasValidators, hasDefaulters bool) {
	for _, w := range webhooks {
		hasDefaulters = hasDefaulters || w.IsDefaulter
		hasValidators = hasValidators || !w.IsDefaulter
	}
	return hasValidators, hasDefaulters
}

// publishingAccess returns the permissions that keep the webhook configurations of a name, which belong to an
// installation in a namespace. A configuration that the program does not need is followed too, because an earlier
// release may have left entries in it.
func publishingAccess(name, namespace string, hasValidators, hasDefaulters bool) []kube.Access {
	var all []kube.Access
	for i, isNeeded := range []bool{hasValidators, hasDefaulters} {
		verbs := []wire.Verb{wire.VerbList, wire.VerbWatch, wire.VerbPatch}
		if isNeeded {
			verbs = append(verbs, wire.VerbCreate) // by an apply, whose permission to create can name the object
		}
		all = append(all, kube.Access{Resource: manifests.WebhookConfigurations()[i], Verbs: verbs, Names: []string{name}})
	}
	namespaces := wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces", ClusterScoped: true}
	return append(all, kube.Access{Resource: namespaces, Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch}, Names: []string{namespace}})
}
