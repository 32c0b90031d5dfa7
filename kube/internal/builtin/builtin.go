// Package builtin knows the kinds of k8s.io/api.
package builtin

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/internal/plural"
	"github.com/yare-go/yare/kube/wire"
)

// Resource returns the resource of a type of k8s.io/api. pkg is its package path below
// that module. A test compares the whole table with the discovery of an API server.
func Resource(pkg, typeName string) (wire.Resource, bool) {
	for line := range strings.SplitSeq(table, "\n") {
		name, rest, _ := strings.Cut(line, " ")
		if name != pkg {
			continue
		}
		group, kinds, _ := strings.Cut(rest, " ")
		namespaced, cluster, _ := strings.Cut(kinds, " ")
		inCluster := hasWord(cluster, typeName)
		if !inCluster && !hasWord(namespaced, typeName) {
			return wire.Resource{}, false
		}
		if group == "-" {
			group = ""
		}
		return wire.Resource{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: path.Base(pkg), Kind: typeName},
			Plural:           plural.Of(typeName),
			ClusterScoped:    inCluster,
		}, true
	}
	return wire.Resource{}, false
}

// HasKind reports whether a kind is one of k8s.io/api, in any version.
func HasKind(kind schema.GroupKind) bool {
	for line := range strings.SplitSeq(table, "\n") {
		fields := strings.Fields(line)
		if group := strings.TrimPrefix(fields[1], "-"); group == kind.Group &&
			slices.ContainsFunc(fields[2:], func(list string) bool { return hasWord(list, kind.Kind) }) {
			return true
		}
	}
	return false
}

// hasWord reports whether a list of words, which commas separate, has a word.
func hasWord(list, word string) bool {
	for each := range strings.SplitSeq(list, ",") {
		if each == word {
			return true
		}
	}
	return false
}

// table has a line for each package: its path, its group, its kinds in namespaces, and its
// cluster-scoped kinds. A "-" stands for nothing, and for the core group.
const table = `admissionregistration/v1 admissionregistration.k8s.io - MutatingAdmissionPolicy,MutatingAdmissionPolicyBinding,MutatingWebhookConfiguration,ValidatingAdmissionPolicy,ValidatingAdmissionPolicyBinding,ValidatingWebhookConfiguration
admissionregistration/v1alpha1 admissionregistration.k8s.io - MutatingAdmissionPolicy,MutatingAdmissionPolicyBinding,ValidatingAdmissionPolicy,ValidatingAdmissionPolicyBinding
admissionregistration/v1beta1 admissionregistration.k8s.io - MutatingAdmissionPolicy,MutatingAdmissionPolicyBinding,MutatingWebhookConfiguration,ValidatingAdmissionPolicy,ValidatingAdmissionPolicyBinding,ValidatingWebhookConfiguration
apiserverinternal/v1alpha1 internal.apiserver.k8s.io - StorageVersion
apps/v1 apps ControllerRevision,DaemonSet,Deployment,ReplicaSet,StatefulSet -
apps/v1beta1 apps ControllerRevision,Deployment,StatefulSet -
apps/v1beta2 apps ControllerRevision,DaemonSet,Deployment,ReplicaSet,StatefulSet -
authentication/v1 authentication.k8s.io - SelfSubjectReview,TokenReview
authentication/v1alpha1 authentication.k8s.io - SelfSubjectReview
authentication/v1beta1 authentication.k8s.io - SelfSubjectReview,TokenReview
authorization/v1 authorization.k8s.io LocalSubjectAccessReview SelfSubjectAccessReview,SelfSubjectRulesReview,SubjectAccessReview
authorization/v1beta1 authorization.k8s.io LocalSubjectAccessReview SelfSubjectAccessReview,SelfSubjectRulesReview,SubjectAccessReview
autoscaling/v1 autoscaling HorizontalPodAutoscaler -
autoscaling/v2 autoscaling HorizontalPodAutoscaler -
batch/v1 batch CronJob,Job -
batch/v1beta1 batch CronJob -
certificates/v1 certificates.k8s.io PodCertificateRequest CertificateSigningRequest,ClusterTrustBundle
certificates/v1alpha1 certificates.k8s.io - ClusterTrustBundle
certificates/v1beta1 certificates.k8s.io PodCertificateRequest CertificateSigningRequest,ClusterTrustBundle
coordination/v1 coordination.k8s.io Lease -
coordination/v1alpha2 coordination.k8s.io LeaseCandidate -
coordination/v1beta1 coordination.k8s.io Lease,LeaseCandidate -
core/v1 - Binding,ConfigMap,Endpoints,Event,LimitRange,PersistentVolumeClaim,Pod,PodTemplate,ReplicationController,ResourceQuota,Secret,Service,ServiceAccount ComponentStatus,Namespace,Node,PersistentVolume
discovery/v1 discovery.k8s.io EndpointSlice -
discovery/v1beta1 discovery.k8s.io EndpointSlice -
events/v1 events.k8s.io Event -
events/v1beta1 events.k8s.io Event -
extensions/v1beta1 extensions DaemonSet,Deployment,Ingress,NetworkPolicy,ReplicaSet -
flowcontrol/v1 flowcontrol.apiserver.k8s.io - FlowSchema,PriorityLevelConfiguration
flowcontrol/v1beta1 flowcontrol.apiserver.k8s.io - FlowSchema,PriorityLevelConfiguration
flowcontrol/v1beta2 flowcontrol.apiserver.k8s.io - FlowSchema,PriorityLevelConfiguration
flowcontrol/v1beta3 flowcontrol.apiserver.k8s.io - FlowSchema,PriorityLevelConfiguration
lifecycle/v1alpha1 lifecycle.k8s.io Eviction,EvictionRequest -
networking/v1 networking.k8s.io Ingress,NetworkPolicy IPAddress,IngressClass,ServiceCIDR
networking/v1beta1 networking.k8s.io Ingress IPAddress,IngressClass,ServiceCIDR
node/v1 node.k8s.io - RuntimeClass
node/v1alpha1 node.k8s.io - RuntimeClass
node/v1beta1 node.k8s.io - RuntimeClass
policy/v1 policy PodDisruptionBudget -
policy/v1beta1 policy PodDisruptionBudget -
rbac/v1 rbac.authorization.k8s.io Role,RoleBinding ClusterRole,ClusterRoleBinding
rbac/v1alpha1 rbac.authorization.k8s.io Role,RoleBinding ClusterRole,ClusterRoleBinding
rbac/v1beta1 rbac.authorization.k8s.io Role,RoleBinding ClusterRole,ClusterRoleBinding
resource/v1 resource.k8s.io ResourceClaim,ResourceClaimTemplate DeviceClass,DeviceTaintRule,ResourceSlice
resource/v1alpha3 resource.k8s.io - DeviceTaintRule,ResourcePoolStatusRequest
resource/v1beta1 resource.k8s.io ResourceClaim,ResourceClaimTemplate DeviceClass,ResourceSlice
resource/v1beta2 resource.k8s.io ResourceClaim,ResourceClaimTemplate DeviceClass,DeviceTaintRule,ResourceSlice
scheduling/v1 scheduling.k8s.io - PriorityClass
scheduling/v1alpha3 scheduling.k8s.io CompositePodGroup,PodGroup,Workload -
scheduling/v1beta1 scheduling.k8s.io PodGroup,Workload PriorityClass
storage/v1 storage.k8s.io CSIStorageCapacity CSIDriver,CSINode,StorageClass,VolumeAttachment,VolumeAttributesClass
storage/v1alpha1 storage.k8s.io CSIStorageCapacity VolumeAttachment,VolumeAttributesClass
storage/v1beta1 storage.k8s.io CSIStorageCapacity CSIDriver,CSINode,StorageClass,VolumeAttachment,VolumeAttributesClass
storagemigration/v1 storagemigration.k8s.io - StorageVersionMigration
storagemigration/v1beta1 storagemigration.k8s.io - StorageVersionMigration`
