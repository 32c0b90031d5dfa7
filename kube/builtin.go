package kube

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtinResource returns the resource of a type of k8s.io/api. pkg is its package path below
// that module. A test compares the whole table with the discovery of an API server.
func builtinResource(pkg, typeName string) (Resource, bool) {
	group, namespaced, cluster := builtinKinds(pkg)
	inCluster := slices.Contains(strings.Fields(cluster), typeName)
	if !inCluster && !slices.Contains(strings.Fields(namespaced), typeName) {
		return Resource{}, false
	}
	return Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: path.Base(pkg), Kind: typeName},
		Plural:           guessPlural(typeName),
		ClusterScoped:    inCluster,
	}, true
}

// builtinKinds returns the group of a package, its kinds in namespaces, and its
// cluster-scoped kinds. The table is code and not a variable, so that it costs nothing at
// start.
func builtinKinds(pkg string) (group, namespaced, cluster string) {
	switch pkg {
	case "admissionregistration/v1":
		return "admissionregistration.k8s.io", "", "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
	case "admissionregistration/v1alpha1":
		return "admissionregistration.k8s.io", "", "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
	case "admissionregistration/v1beta1":
		return "admissionregistration.k8s.io", "", "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
	case "apiserverinternal/v1alpha1":
		return "internal.apiserver.k8s.io", "", "StorageVersion"
	case "apps/v1":
		return "apps", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", ""
	case "apps/v1beta1":
		return "apps", "ControllerRevision Deployment StatefulSet", ""
	case "apps/v1beta2":
		return "apps", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", ""
	case "authentication/v1":
		return "authentication.k8s.io", "", "SelfSubjectReview TokenReview"
	case "authentication/v1alpha1":
		return "authentication.k8s.io", "", "SelfSubjectReview"
	case "authentication/v1beta1":
		return "authentication.k8s.io", "", "SelfSubjectReview TokenReview"
	case "authorization/v1":
		return "authorization.k8s.io", "LocalSubjectAccessReview", "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"
	case "authorization/v1beta1":
		return "authorization.k8s.io", "LocalSubjectAccessReview", "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"
	case "autoscaling/v1":
		return "autoscaling", "HorizontalPodAutoscaler", ""
	case "autoscaling/v2":
		return "autoscaling", "HorizontalPodAutoscaler", ""
	case "batch/v1":
		return "batch", "CronJob Job", ""
	case "batch/v1beta1":
		return "batch", "CronJob", ""
	case "certificates/v1":
		return "certificates.k8s.io", "PodCertificateRequest", "CertificateSigningRequest ClusterTrustBundle"
	case "certificates/v1alpha1":
		return "certificates.k8s.io", "", "ClusterTrustBundle"
	case "certificates/v1beta1":
		return "certificates.k8s.io", "PodCertificateRequest", "CertificateSigningRequest ClusterTrustBundle"
	case "coordination/v1":
		return "coordination.k8s.io", "Lease", ""
	case "coordination/v1alpha2":
		return "coordination.k8s.io", "LeaseCandidate", ""
	case "coordination/v1beta1":
		return "coordination.k8s.io", "Lease LeaseCandidate", ""
	case "core/v1":
		return "", "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount", "ComponentStatus Namespace Node PersistentVolume"
	case "discovery/v1":
		return "discovery.k8s.io", "EndpointSlice", ""
	case "discovery/v1beta1":
		return "discovery.k8s.io", "EndpointSlice", ""
	case "events/v1":
		return "events.k8s.io", "Event", ""
	case "events/v1beta1":
		return "events.k8s.io", "Event", ""
	case "extensions/v1beta1":
		return "extensions", "DaemonSet Deployment Ingress NetworkPolicy ReplicaSet", ""
	case "flowcontrol/v1":
		return "flowcontrol.apiserver.k8s.io", "", "FlowSchema PriorityLevelConfiguration"
	case "flowcontrol/v1beta1":
		return "flowcontrol.apiserver.k8s.io", "", "FlowSchema PriorityLevelConfiguration"
	case "flowcontrol/v1beta2":
		return "flowcontrol.apiserver.k8s.io", "", "FlowSchema PriorityLevelConfiguration"
	case "flowcontrol/v1beta3":
		return "flowcontrol.apiserver.k8s.io", "", "FlowSchema PriorityLevelConfiguration"
	case "lifecycle/v1alpha1":
		return "lifecycle.k8s.io", "Eviction EvictionRequest", ""
	case "networking/v1":
		return "networking.k8s.io", "Ingress NetworkPolicy", "IPAddress IngressClass ServiceCIDR"
	case "networking/v1beta1":
		return "networking.k8s.io", "Ingress", "IPAddress IngressClass ServiceCIDR"
	case "node/v1":
		return "node.k8s.io", "", "RuntimeClass"
	case "node/v1alpha1":
		return "node.k8s.io", "", "RuntimeClass"
	case "node/v1beta1":
		return "node.k8s.io", "", "RuntimeClass"
	case "policy/v1":
		return "policy", "PodDisruptionBudget", ""
	case "policy/v1beta1":
		return "policy", "PodDisruptionBudget", ""
	case "rbac/v1":
		return "rbac.authorization.k8s.io", "Role RoleBinding", "ClusterRole ClusterRoleBinding"
	case "rbac/v1alpha1":
		return "rbac.authorization.k8s.io", "Role RoleBinding", "ClusterRole ClusterRoleBinding"
	case "rbac/v1beta1":
		return "rbac.authorization.k8s.io", "Role RoleBinding", "ClusterRole ClusterRoleBinding"
	case "resource/v1":
		return "resource.k8s.io", "ResourceClaim ResourceClaimTemplate", "DeviceClass DeviceTaintRule ResourceSlice"
	case "resource/v1alpha3":
		return "resource.k8s.io", "", "DeviceTaintRule ResourcePoolStatusRequest"
	case "resource/v1beta1":
		return "resource.k8s.io", "ResourceClaim ResourceClaimTemplate", "DeviceClass ResourceSlice"
	case "resource/v1beta2":
		return "resource.k8s.io", "ResourceClaim ResourceClaimTemplate", "DeviceClass DeviceTaintRule ResourceSlice"
	case "scheduling/v1":
		return "scheduling.k8s.io", "", "PriorityClass"
	case "scheduling/v1alpha3":
		return "scheduling.k8s.io", "CompositePodGroup PodGroup Workload", ""
	case "scheduling/v1beta1":
		return "scheduling.k8s.io", "PodGroup Workload", "PriorityClass"
	case "storage/v1":
		return "storage.k8s.io", "CSIStorageCapacity", "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"
	case "storage/v1alpha1":
		return "storage.k8s.io", "CSIStorageCapacity", "VolumeAttachment VolumeAttributesClass"
	case "storage/v1beta1":
		return "storage.k8s.io", "CSIStorageCapacity", "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"
	case "storagemigration/v1":
		return "storagemigration.k8s.io", "", "StorageVersionMigration"
	case "storagemigration/v1beta1":
		return "storagemigration.k8s.io", "", "StorageVersionMigration"
	}
	return "", "", ""
}
