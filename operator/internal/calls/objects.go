package calls

import (
	"fmt"
	"slices"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// objects adds the webhooks of an installation to its objects.
type objects struct {
	// name is that of the objects, and namespace is where the program is installed.
	name, namespace string
	// port is where the program serves its webhooks.
	port int
	// secret is the Secret with the certificate of the program. It is empty if no Secret is mounted for that purpose.
	secret string
	// isIssuing is true if the program issues its certificates.
	isIssuing bool
	// configurations are the webhook configurations, and annotations are their annotations.
	configurations []webhookConfiguration
	annotations    map[string]string
}

// webhookConfiguration is a ValidatingWebhookConfiguration or a MutatingWebhookConfiguration.
type webhookConfiguration struct {
	resource wire.Resource
	// entries are empty if no apply may change the entries that the program writes.
	entries []*configuration.Entry
}

// folder is where the container of the program has the files of the Secret of --webhook-secret.
const folder = "/etc/yare/webhooks"

// addTo adds to the objects of an installation what its webhooks need: ports, a Secret, the configurations. The last
// object is the Deployment.
func (o *objects) addTo(all []manifests.Object) ([]manifests.Object, error) {
	for _, object := range all {
		switch manifests.Kind(object) {
		case "Service":
			spec := manifests.ObjectAt(object, "spec")
			ports, _ := spec["ports"].([]any)
			if metrics, ok := ports[0].(manifests.Object); ok && metrics["port"] == int64(0) {
				ports = nil // the program serves no metrics
			}
			// By a number as the target, Pods of a release without webhooks would be endpoints too.
			spec["ports"] = append(ports,
				manifests.Object{
					"name": "webhooks", "port": int64(manifests.WebhookPort), "protocol": "TCP", "targetPort": "webhooks",
				})
		case "NetworkPolicy":
			spec := manifests.ObjectAt(object, "spec")
			ingress, _ := spec["ingress"].([]any)
			// Nobody knows the addresses of the API servers here.
			spec["ingress"] = append(ingress,
				manifests.Object{"ports": []any{manifests.Object{"port": "webhooks", "protocol": "TCP"}}})
		}
	}
	last := len(all) - 1
	o.addToPods(manifests.PodSpec(all[last]))
	further, err := o.further()
	return slices.Insert(all, last, further...), err
}

// addToPods adds the port and the mounted Secret to the spec of the Pods.
func (o *objects) addToPods(spec manifests.Object) {
	containers, _ := spec["containers"].([]any)
	container, _ := containers[0].(manifests.Object)
	ports, _ := container["ports"].([]any)
	container["ports"] = append(ports,
		manifests.Object{"name": "webhooks", "containerPort": int64(o.port), "protocol": "TCP"})
	if o.secret == "" {
		return
	}
	mounts, _ := container["volumeMounts"].([]any)
	container["volumeMounts"] = append(mounts, manifests.Object{"name": "webhooks", "mountPath": folder, "readOnly": true})
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes,
		manifests.Object{"name": "webhooks", "secret": manifests.Object{"secretName": o.secret}})
}

// further returns the Secret and the configurations.
func (o *objects) further() (all []manifests.Object, err error) {
	if o.isIssuing {
		// Without data and type, no apply changes what the program writes.
		all = append(all, manifests.Object{
			"apiVersion": "v1", "kind": "Secret",
			"metadata": manifests.Object{"name": manifests.WebhookSecretName(o.name), "namespace": o.namespace},
		})
	}
	for _, c := range o.configurations {
		object := manifests.Object{
			"apiVersion": c.resource.GroupVersion().String(), "kind": c.resource.Kind,
			"metadata": manifests.Object{"name": manifests.ClusterName(o.name, o.namespace)},
		}
		for key, value := range o.annotations {
			manifests.ObjectAt(object, "metadata", "annotations")[key] = value
		}
		if len(c.entries) > 0 {
			var entries any
			content, err := kube.Marshal(c.entries)
			if err == nil {
				err = kube.Unmarshal(content, &entries)
			}
			if err != nil {
				return nil, fmt.Errorf("render the entries of the %s: %w", c.resource.Kind, err)
			}
			object["webhooks"] = entries
		}
		all = append(all, object)
	}
	return all, nil
}
