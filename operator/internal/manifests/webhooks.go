package manifests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Webhooks are what the objects of a program with webhooks have more: see [WebhookOptions.Webhooks]. The zero value is that
// of a program without webhooks.
type Webhooks struct {
	ContainerPorts, ServicePorts []Object
	// Ingress are rules of the NetworkPolicy.
	Ingress []Object
	// Objects are further objects of the installation.
	Objects []Object
	// MountedSecret is the Secret with the certificate of the program. It is empty if no Secret is mounted for that purpose.
	MountedSecret string
}

// WebhookOptions describe the webhooks of an installation.
type WebhookOptions struct {
	// Name is that of the objects, and Namespace is where the program is installed.
	Name, Namespace string
	// Port is where the program serves its webhooks.
	Port int
	// MountedSecret is the field of [Webhooks].
	MountedSecret string
	// IsIssuing is true if the program issues its certificates.
	IsIssuing bool
	// Configurations are the webhook configurations, and Annotations are their annotations.
	Configurations []WebhookConfiguration
	Annotations    map[string]string
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

// Webhooks returns what the objects of the installation have more.
func (o *WebhookOptions) Webhooks() (*Webhooks, error) {
	w := &Webhooks{
		ContainerPorts: []Object{{"name": "webhooks", "containerPort": o.Port, "protocol": "TCP"}},
		// By a number as its target, Pods of a release without webhooks would be endpoints too.
		ServicePorts: []Object{{"name": "webhooks", "port": WebhookPort, "protocol": "TCP", "targetPort": "webhooks"}},
		// Nobody knows the addresses of the API servers here.
		Ingress:       []Object{{"ports": []Object{{"port": "webhooks", "protocol": "TCP"}}}},
		MountedSecret: o.MountedSecret,
	}
	if o.IsIssuing {
		// Without data and type, no apply changes what the program writes.
		w.Objects = append(w.Objects, Object{"apiVersion": "v1", "kind": "Secret", "metadata": Object{"name": WebhookSecretName(o.Name), "namespace": o.Namespace}})
	}
	for _, c := range o.Configurations {
		object := Object{
			"apiVersion": c.Resource.GroupVersion().String(), "kind": c.Resource.Kind,
			"metadata": Object{"name": ClusterName(o.Name, o.Namespace)},
		}
		if len(o.Annotations) > 0 {
			annotations := at(object, "metadata", "annotations")
			for key, value := range o.Annotations {
				annotations[key] = value
			}
		}
		if len(c.Entries) > 0 {
			var entries any
			content, err := kube.Marshal(c.Entries)
			if err == nil {
				err = json.Unmarshal(content, &entries) // integers stay integers
			}
			if err != nil {
				return nil, fmt.Errorf("render the entries of the %s: %w", c.Resource.Kind, err)
			}
			object["webhooks"] = entries
		}
		w.Objects = append(w.Objects, object)
	}
	return w, nil
}

// WebhookConfigurations returns the resources of ValidatingWebhookConfigurations and MutatingWebhookConfigurations.
func WebhookConfigurations() [2]wire.Resource {
	r := wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		Plural:           "validatingwebhookconfigurations", ClusterScoped: true,
	}
	both := [2]wire.Resource{r, r}
	both[1].Kind, both[1].Plural = "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
	return both
}
