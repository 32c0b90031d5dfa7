package configpublishing

import (
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/webhook/followed"
)

// Access returns the permissions that a [Publisher] needs for the configurations of a name, and for the Namespace and
// the Deployment of the installation, which may be empty. All are by name. A configuration that the program does not
// need is followed too, because an earlier release may have left entries in it. No permission is to create a
// configuration: only an installation makes one.
//
// API servers with the admission plugin OwnerReferencesPermissionEnforcement let only users with the verb delete set an
// owner of an object. So the leader needs the verb delete to make the Namespace the owner. In development and in tests
// [Publisher.Remove] deletes the configurations.
func Access(name, namespace, deployment string) []kube.Access {
	var all []kube.Access
	for _, r := range manifests.WebhookConfigurationResources() {
		verbs := []wire.Verb{wire.VerbList, wire.VerbWatch, wire.VerbPatch, wire.VerbDelete}
		all = append(all, kube.Access{Resource: r, Verbs: verbs, Names: []string{name}})
	}
	if namespace != "" {
		all = append(all, kube.Access{
			Resource: manifests.NamespaceResource(), Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch},
			Names: []string{namespace},
		})
	}
	if deployment != "" {
		all = append(all, followed.DeploymentAccess(deployment))
	}
	return all
}
