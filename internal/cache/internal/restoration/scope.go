package restoration

import "strings"

// scope names the streams that one restoration concerns, because one server assigns their resource versions.
//
// The kinds of Kubernetes and the kinds that the program defines are in one scope, with an empty group. They are
// stored in the etcd of the API server. Each foreign group is a scope of its own: an aggregated API server may serve
// the group, with a storage and with resource versions of its own.
//
// Example of a program that defines webapps.example.com:
//
//	deployments.apps, webapps.example.com     {"", ""}
//	certificates.cert-manager.io              {"", "cert-manager.io"}
//	pods.metrics.k8s.io                       {"", "metrics.k8s.io"}
//	deployments.apps of the cluster east      {"east", ""}
type scope struct{ cluster, group string }

// isKubernetesGroup reports whether Kubernetes defines the kinds of a group. The groups of CustomResourceDefinitions
// have a dot. A test compares the groups with a dot with the groups of k8s.io/api.
func isKubernetesGroup(group string) bool {
	switch group {
	case "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
		"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
		"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io", "node.k8s.io",
		"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io":
		return true
	default:
		return !strings.Contains(group, ".")
	}
}
