package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// MachineSpec has the fields of a Machine of Cluster API that [NewMachine] sets. The programs that read Machines have the
// type of Cluster API.
type MachineSpec struct {
	ClusterName       string             `json:"clusterName"`
	Bootstrap         MachineBootstrap   `json:"bootstrap"`
	InfrastructureRef MachineReference   `json:"infrastructureRef"`
	Version           string             `json:"version,omitempty"`
	ProviderID        string             `json:"providerID,omitempty"`
	FailureDomain     string             `json:"failureDomain,omitempty"`
	ReadinessGates    []MachineCondition `json:"readinessGates,omitempty" crd:"listType=map,listMapKey=conditionType"`
	Deletion          MachineDeletion    `json:"deletion,omitempty"`
}

// MachineBootstrap says where the data for the first start is.
type MachineBootstrap struct {
	ConfigRef      MachineReference `json:"configRef"`
	DataSecretName string           `json:"dataSecretName,omitempty"`
}

// MachineReference names an object of a provider.
type MachineReference struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	APIGroup string `json:"apiGroup"`
}

// MachineCondition names a condition of a Machine.
type MachineCondition struct {
	ConditionType string `json:"conditionType"`
}

// MachineDeletion has the limits of a deletion.
type MachineDeletion struct {
	NodeDrainTimeoutSeconds *int32 `json:"nodeDrainTimeoutSeconds,omitempty"`
}

// MachineStatus is the observed state of a Machine.
type MachineStatus struct {
	Conditions         []metav1.Condition     `json:"conditions,omitempty"`
	Initialization     MachineInitialization  `json:"initialization,omitempty"`
	NodeRef            MachineNode            `json:"nodeRef,omitempty"`
	NodeInfo           *corev1.NodeSystemInfo `json:"nodeInfo,omitempty"`
	Addresses          []MachineAddress       `json:"addresses,omitempty"`
	Phase              string                 `json:"phase,omitempty"`
	ObservedGeneration int64                  `json:"observedGeneration,omitempty"`
}

// MachineInitialization says what was made once.
type MachineInitialization struct {
	InfrastructureProvisioned  bool `json:"infrastructureProvisioned,omitempty"`
	BootstrapDataSecretCreated bool `json:"bootstrapDataSecretCreated,omitempty"`
}

// MachineNode names the Node of a Machine.
type MachineNode struct {
	Name string `json:"name,omitempty"`
}

// MachineAddress is an address of a Machine.
type MachineAddress struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// Definition returns the definition of the resource.
func (MachineSpec) Definition() kube.Definition {
	return kube.Definition{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"}
}

// Machine is a Machine of Cluster API. A Machine has 3 KB.
type Machine = kube.CustomResource[MachineSpec, MachineStatus]

// NewMachine returns the i-th Machine, as the controllers of Cluster API make one. Its name ends in i.
func NewMachine(i int) *Machine {
	shop := NewShop(i) // has names and words that vary
	cluster, version := shop.Namespace, fmt.Sprintf("v1.%d.%d", 33+i%5, i%7)
	set := cluster + "-workers-" + shop.Annotations["example.com/checksum"][:5]
	name := fmt.Sprint(set, "-", i)
	template := MachineReference{Kind: "ExampleMachine", Name: name, APIGroup: "infrastructure.cluster.x-k8s.io"}
	config := MachineReference{Kind: "ExampleConfig", Name: name, APIGroup: "bootstrap.cluster.x-k8s.io"}
	m := &Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shop.Namespace, Name: name,
			Labels: map[string]string{
				"cluster.x-k8s.io/cluster-name": cluster, "cluster.x-k8s.io/deployment-name": cluster + "-workers",
				"cluster.x-k8s.io/set-name": set, "machine-template-hash": shop.Annotations["example.com/checksum"][:10],
			},
			Annotations: map[string]string{"example.com/contact": shop.Annotations["example.com/contact"]},
			Finalizers:  []string{"machine.cluster.x-k8s.io"},
		},
		Spec: MachineSpec{
			ClusterName: cluster, Version: version, FailureDomain: fmt.Sprint("zone-", i%3),
			Bootstrap: MachineBootstrap{ConfigRef: config, DataSecretName: name}, InfrastructureRef: template,
			ProviderID: "example:///" + shop.Annotations["example.com/checksum"],
			Deletion:   MachineDeletion{NodeDrainTimeoutSeconds: new(int32(60 * (1 + i%9)))},
		},
		Status: MachineStatus{
			Phase: "Running", NodeRef: MachineNode{Name: name}, ObservedGeneration: 1,
			Initialization: MachineInitialization{InfrastructureProvisioned: true, BootstrapDataSecretCreated: true},
			Addresses:      []MachineAddress{{"InternalIP", fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}},
			NodeInfo: &corev1.NodeSystemInfo{
				MachineID: shop.Annotations["example.com/checksum"], Architecture: "amd64", OperatingSystem: "linux",
				KernelVersion: "6.12.48", OSImage: "Example Linux 13", ContainerRuntimeVersion: "containerd://2.2.1", KubeletVersion: version,
			},
		},
	}
	for _, condition := range []string{"Available", "Ready"} {
		kube.SetCondition(context.Background(), &m.Status.Conditions, m, condition, (i+len(condition))%11 > 0, condition,
			"observed at "+version)
	}
	return m
}

// CreateMachine applies the i-th Machine and its status, as two field managers.
func CreateMachine(ctx context.Context, client *kube.Client, i int) error {
	return create(ctx, client, "capi-machineset", "manager", NewMachine(i))
}
