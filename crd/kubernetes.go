package crd

import (
	"reflect"
	"slices"
	"strings"
)

// kubernetesTags holds the rules of types and fields of k8s.io/api that stand in their comments.
// Reflection does not see comments. Each line has a crd tag and the types or fields that it belongs
// to. A test compares the rules with the OpenAPI document of an API server.
const kubernetesTags = `
mapType=atomic core/v1.SecretReference core/v1.FileKeySelector core/v1.ObjectFieldSelector core/v1.ResourceFieldSelector core/v1.ConfigMapKeySelector core/v1.SecretKeySelector core/v1.NodeSelector core/v1.NodeSelectorTerm core/v1.TopologySelectorTerm core/v1.EvictionResponder core/v1.EndpointAddress core/v1.EndpointPort core/v1.ObjectReference core/v1.LocalObjectReference core/v1.TypedLocalObjectReference core/v1.ScopeSelector core/v1.PodSpec.nodeSelector core/v1.ReplicationControllerSpec.selector core/v1.ServiceSpec.selector networking/v1.ServiceBackendPort rbac/v1.Subject rbac/v1.RoleRef autoscaling/v1.CrossVersionObjectReference discovery/v1.EndpointPort node/v1.Scheduling.nodeSelector
listType=set core/v1.VolumeMount.bindMountOptions core/v1.ContainerRestartRuleOnExitCodes.values core/v1.NodeSpec.podCIDRs core/v1.NodePodPreemptionPolicy.disableResizePreemption core/v1.NodeAllocatableResourceClaimStatus.containers batch/v1.PodFailurePolicyOnExitCodesRequirement.values batch/v1.UncountedTerminatedPods.succeeded batch/v1.UncountedTerminatedPods.failed storage/v1.CSIDriverSpec.volumeLifecycleModes discovery/v1.Endpoint.addresses
listType=atomic core/v1.PodStatus.hostIPs batch/v1.JobStatus.conditions
listMapKey=protocol core/v1.Container.ports core/v1.EphemeralContainerCommon.ports core/v1.ServiceSpec.ports
listMapKey=whenUnsatisfiable core/v1.PodSpec.topologySpreadConstraints
listType=map,listMapKey=name core/v1.ResourceRequirements.claims core/v1.PodStatus.volumeHealth
listType=map,listMapKey=resourceID core/v1.ResourceStatus.resources
listMapKey=reason core/v1.VolumeHealthStatus.healthConditions core/v1.PodVolumeHealth.healthConditions
default=TCP core/v1.ContainerPort.protocol core/v1.ServicePort.protocol
default= core/v1.LocalObjectReference.name core/v1.GRPCAction.service
default=false core/v1.FileKeySelector.optional core/v1.AzureDiskVolumeSource.readOnly
default=rbd core/v1.RBDVolumeSource.pool core/v1.RBDPersistentVolumeSource.pool
default=admin core/v1.RBDVolumeSource.user core/v1.RBDPersistentVolumeSource.user
default=/etc/ceph/keyring core/v1.RBDVolumeSource.keyring core/v1.RBDPersistentVolumeSource.keyring
default=default core/v1.ISCSIVolumeSource.iscsiInterface core/v1.ISCSIPersistentVolumeSource.iscsiInterface
default=ReadWrite core/v1.AzureDiskVolumeSource.cachingMode
default=Shared core/v1.AzureDiskVolumeSource.kind
default=ext4 core/v1.AzureDiskVolumeSource.fsType
default=ThinProvisioned core/v1.ScaleIOVolumeSource.storageMode core/v1.ScaleIOPersistentVolumeSource.storageMode
default=xfs core/v1.ScaleIOVolumeSource.fsType core/v1.ScaleIOPersistentVolumeSource.fsType
default=0 core/v1.ReplicationControllerSpec.minReadySeconds
default=1 core/v1.ReplicationControllerSpec.replicas
`

// kubernetesTag returns the tag of a type of k8s.io/api, or of a field of it, by its name: core/v1.X
// or core/v1.X.y. It is empty for other names.
func kubernetesTag(name string) string {
	for line := range strings.Lines(kubernetesTags) {
		words := strings.Fields(line)
		if len(words) > 0 && slices.Contains(words[1:], name) {
			return words[0]
		}
	}
	return ""
}

// kubernetesTypeTag returns the tag of t, or nothing if t is not of k8s.io/api.
func kubernetesTypeTag(t reflect.Type) string {
	pkg, ok := strings.CutPrefix(t.PkgPath(), "k8s.io/api/")
	if !ok {
		return ""
	}
	return kubernetesTag(pkg + "." + t.Name())
}

// kubernetesFieldTag returns the tag of f, with the schema s, or nothing if f does not belong to a type of k8s.io/api.
func kubernetesFieldTag(f field, s *Schema) string {
	pkg, ok := strings.CutPrefix(f.owner.pkg, "k8s.io/api/")
	if !ok {
		return ""
	}
	text := kubernetesTag(pkg + "." + f.owner.decl + "." + f.name)
	// The keys of strategic merge patches are the keys of server-side apply, with exceptions in the
	// table. A server refuses a definition with a key that may be missing.
	key := f.Tag.Get("patchMergeKey")
	if key != "" && s.Items != nil && text != "listType=atomic" && s.Items.hasAlways(key) {
		text = strings.TrimSuffix("listType=map,listMapKey="+key+","+text, ",")
	}
	return text
}
