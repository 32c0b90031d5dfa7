package operator

import (
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
	"github.com/yare-go/yare/operator/internal/webhook/certificates"
	"github.com/yare-go/yare/operator/internal/webhook/configpublishing"
)

// webhookAccess returns the permissions with which a program issues the certificates of its webhooks and publishes
// the webhooks and conversions of its parts. name is the name of the Service, and namespace is that of the program.
func webhookAccess(name, namespace string, parts []Part) []kube.Access {
	all := append(configpublishing.Access(manifests.ClusterName(name, namespace), namespace, name), kube.Access{
		Resource: certificates.Resource(), Verbs: certificates.Verbs(), Names: []string{manifests.WebhookSecretName(name)},
		OwnNamespace: true,
	})
	if conversions, isFound, err := conversionsOf(parts); err == nil && isFound {
		all = append(all, conversions.access()...)
	}
	return all
}

// webhookTypes reports whether there are validators, and whether there are defaulters.
func webhookTypes(webhooks []*admission.Webhook) (hasValidators, hasDefaulters bool) {
	for _, w := range webhooks {
		hasDefaulters = hasDefaulters || w.IsDefaulter
		hasValidators = hasValidators || !w.IsDefaulter
	}
	return hasValidators, hasDefaulters
}
