package manifests

import (
	"fmt"
	"slices"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Webhooks describe the webhooks of an installation.
type Webhooks struct {
	// Name is that of the objects, and Namespace is where the program is installed.
	Name, Namespace string
	// Port is where the program serves its webhooks.
	Port int
	// Secret is the Secret with the certificate of the program. It is empty if no Secret is mounted for that purpose.
	Secret string
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

// AddTo adds to the objects of an installation what its webhooks need: ports, a Secret, the configurations. The last
// object is the Deployment.
func (w *Webhooks) AddTo(objects []Object) ([]Object, error) {
	for _, object := range objects {
		switch Kind(object) {
		case "Service":
			spec := objectAt(object, "spec")
			ports, _ := spec["ports"].([]any)
			if metrics, ok := ports[0].(Object); ok && metrics["port"] == int64(0) {
				ports = nil // the program serves no metrics
			}
			// By a number as the target, Pods of a release without webhooks would be endpoints too.
			spec["ports"] = append(ports,
				Object{"name": "webhooks", "port": int64(WebhookPort), "protocol": "TCP", "targetPort": "webhooks"})
		case "NetworkPolicy":
			spec := objectAt(object, "spec")
			ingress, _ := spec["ingress"].([]any)
			// Nobody knows the addresses of the API servers here.
			spec["ingress"] = append(ingress, Object{"ports": []any{Object{"port": "webhooks", "protocol": "TCP"}}})
		}
	}
	last := len(objects) - 1
	w.addToPods(podSpec(objects[last]))
	further, err := w.objects()
	return slices.Insert(objects, last, further...), err
}

// addToPods adds the port and the mounted Secret to the spec of the Pods.
func (w *Webhooks) addToPods(spec Object) {
	containers, _ := spec["containers"].([]any)
	container, _ := containers[0].(Object)
	ports, _ := container["ports"].([]any)
	container["ports"] = append(ports, Object{"name": "webhooks", "containerPort": int64(w.Port), "protocol": "TCP"})
	if w.Secret == "" {
		return
	}
	mounts, _ := container["volumeMounts"].([]any)
	container["volumeMounts"] = append(mounts, Object{"name": "webhooks", "mountPath": WebhookFolder, "readOnly": true})
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, Object{"name": "webhooks", "secret": Object{"secretName": w.Secret}})
}

// objects returns the Secret and the configurations.
func (w *Webhooks) objects() (all []Object, err error) {
	if w.IsIssuing {
		// Without data and type, no apply changes what the program writes.
		all = append(all, Object{
			"apiVersion": "v1", "kind": "Secret",
			"metadata": Object{"name": WebhookSecretName(w.Name), "namespace": w.Namespace},
		})
	}
	for _, c := range w.Configurations {
		object := Object{
			"apiVersion": c.Resource.GroupVersion().String(), "kind": c.Resource.Kind,
			"metadata": Object{"name": ClusterName(w.Name, w.Namespace)},
		}
		for key, value := range w.Annotations {
			objectAt(object, "metadata", "annotations")[key] = value
		}
		if len(c.Entries) > 0 {
			var entries any
			content, err := kube.Marshal(c.Entries)
			if err == nil {
				err = kube.Unmarshal(content, &entries)
			}
			if err != nil {
				return nil, fmt.Errorf("render the entries of the %s: %w", c.Resource.Kind, err)
			}
			object["webhooks"] = entries
		}
		all = append(all, object)
	}
	return all, nil
}
