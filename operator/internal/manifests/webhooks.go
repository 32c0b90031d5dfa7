package manifests

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/wire"
)

// Webhooks describe the webhooks of a program. The zero value is a program without webhooks.
type Webhooks struct {
	// Port is where the program serves its webhooks.
	Port int
	// Secret is the Secret in which the program keeps its authorities. It is empty if the program issues no certificates.
	Secret string
	// MountedSecret is the Secret with the certificate of the program. It is empty if no Secret is mounted for that purpose.
	MountedSecret string
	// Configurations are the webhook configurations.
	Configurations []WebhookConfiguration
	// Annotations are those of the configurations.
	Annotations map[string]string
}

// WebhookConfiguration is a ValidatingWebhookConfiguration or a MutatingWebhookConfiguration.
type WebhookConfiguration struct {
	Resource wire.Resource
	// Entries encode as the entries. Without entries the manifest has no list of entries, so that no apply changes the
	// entries that the program writes.
	Entries []any
}

// WebhookPort is the port of the Service that API servers call.
const WebhookPort = 443

// WebhookFolder is where the container of the program has the files of the Secret of [Webhooks].
const WebhookFolder = "/etc/yare/webhooks"

// WebhookSecretName returns the name of the Secret with the webhook authorities of an installation.
func WebhookSecretName(name string) string { return name + "-webhooks" }

// add adds the Secret and the configurations.
func (w *Webhooks) add(r *renderer) {
	if w.Secret != "" {
		r.add(webhookSecretText)
	}
	for _, c := range w.Configurations {
		r.add(webhookConfigurationText)
		r.last()["kind"] = c.Resource.Kind
		if len(c.Entries) > 0 {
			r.last()["webhooks"] = r.decoded(c.Entries)
		}
		if len(w.Annotations) > 0 {
			at(r.last(), "metadata")["annotations"] = r.decoded(w.Annotations)
		}
	}
}

// ValidatingConfigurations returns the resource of ValidatingWebhookConfigurations.
func ValidatingConfigurations() wire.Resource { return configurations("Validating", "validating") }

// MutatingConfigurations returns the resource of MutatingWebhookConfigurations.
func MutatingConfigurations() wire.Resource { return configurations("Mutating", "mutating") }

// WebhookConfigurations returns both resources of webhook configurations.
func WebhookConfigurations() []wire.Resource {
	return []wire.Resource{ValidatingConfigurations(), MutatingConfigurations()}
}

func configurations(role, plural string) wire.Resource {
	return wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: role + "WebhookConfiguration"},
		Plural:           plural + "webhookconfigurations", ClusterScoped: true,
	}
}
