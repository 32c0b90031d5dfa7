// Package v1 has types with the markers of kubebuilder and with crd tags.
//
// +groupName=compared.example.com
package v1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/yare-go/yare/kube"
)

// Port is a named type with markers.
//
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=65535
type Port int32

// CRDTag returns what the markers say.
func (Port) CRDTag() string { return "minimum=1,maximum=65535" }

// Phase is a step.
//
// +kubebuilder:validation:Enum=Pending;Running;Failed
type Phase string

// CRDTag returns what the markers say.
func (Phase) CRDTag() string { return "enum=Pending|Running|Failed" }

// Names is a list with markers.
//
// +kubebuilder:validation:MaxItems=8
// +kubebuilder:validation:items:MaxLength=63
type Names []string

// CRDTag returns what the markers say.
func (Names) CRDTag() string { return "maxItems=8,items.maxLength=63" }

// Point encodes itself, as its fields.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="self.x != self.y",message="no diagonals"
type Point struct {
	X int32 `json:"x"`
	Y int32 `json:"y,omitempty"`
}

// MarshalJSON returns the fields.
func (Point) MarshalJSON() ([]byte, error) { return []byte(`{"x":0}`), nil }

// CRDTag returns what the markers say.
func (Point) CRDTag() string { return "type=struct,mapType=atomic" }

// Rules returns what the markers say.
func (Point) Rules() []kube.Rule {
	return []kube.Rule{{Rule: "self.x != self.y", Message: "no diagonals"}}
}

// Address is text in JSON.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Format=ipv4
type Address struct {
	Bytes [4]byte `json:"-"`
}

// MarshalJSON returns the text.
func (Address) MarshalJSON() ([]byte, error) { return []byte(`"127.0.0.1"`), nil }

// CRDTag returns what the markers say.
func (Address) CRDTag() string { return "type=string,format=ipv4" }

// Common is embedded.
type Common struct {
	// +kubebuilder:validation:MinLength=1
	Owner string `json:"owner" crd:"minLength=1"`
}

// Way is a union.
//
// +kubebuilder:validation:ExactlyOneOf=road;rail
// +kubebuilder:validation:AtMostOneOf=sea;air
// +kubebuilder:validation:AtLeastOneOf=sea;road
type Way struct {
	Road *string `json:"road,omitempty"`
	Rail *string `json:"rail,omitempty"`
	Sea  *string `json:"sea,omitempty"`
	Air  *string `json:"air,omitempty"`
}

// CRDTag returns what the markers say.
func (Way) CRDTag() string { return "atMostOneOf=sea|air,exactlyOneOf=road|rail,atLeastOneOf=sea|road" }

// Door is an item of a list.
type Door struct {
	Name string `json:"name"`
	// +kubebuilder:default=TCP
	Protocol string `json:"protocol,omitempty" crd:"default=TCP"`
	Port     Port   `json:"port"`
}

// ShopSpec has every kind of marker.
type ShopSpec struct {
	Common `json:",inline"`

	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`
	Name string `json:"name" crd:"minLength=1,maxLength=63,pattern='^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$',selectable,column"`
	// +kubebuilder:validation:Format=uri
	URL string `json:"url,omitempty" crd:"format=uri"`
	// +optional
	Optional string `json:"optional" crd:"optional"`
	// +required
	Required *string `json:"required" crd:"required"`
	// +nullable
	Nullable *string `json:"nullable,omitempty" crd:"nullable"`

	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:MultipleOf=5
	// +kubebuilder:default=10
	Percent int32 `json:"percent,omitempty" crd:"minimum=0,exclusiveMinimum,maximum=100,multipleOf=5,default=10"`
	Count   int64 `json:"count"`
	// +kubebuilder:default=true
	Open bool `json:"open,omitempty" crd:"default=true"`
	Port Port `json:"port"`
	// +kubebuilder:validation:Minimum=1024
	HighPort *Port  `json:"highPort,omitempty" crd:"minimum=1024"`
	Ports    []Port `json:"ports,omitempty"`
	// +kubebuilder:default=Pending
	Phase  Phase            `json:"phase,omitempty" crd:"default=Pending"`
	Phases map[string]Phase `json:"phases,omitempty"`
	// +kubebuilder:validation:Enum=1;2;3
	Level int32 `json:"level,omitempty" crd:"enum=1|2|3"`

	// +listType=set
	// +kubebuilder:validation:MinItems=1
	Names Names `json:"names,omitempty" crd:"listType=set,minItems=1"`
	// +listType=map
	// +listMapKey=name
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=16
	Doors []Door `json:"doors,omitempty" crd:"listType=map,listMapKey=name,listMapKey=protocol,maxItems=16"`
	// +kubebuilder:validation:items:Pattern=`^[a-z,]+$`
	Words []string `json:"words,omitempty" crd:"items.pattern='^[a-z,]+$'"`
	// +mapType=granular
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=9
	Labels map[string]string `json:"labels,omitempty" crd:"mapType=granular,minProperties=1,maxProperties=9"`
	// +kubebuilder:default={a: "b"}
	Defaults map[string]string `json:"defaults,omitempty" crd:"default='{\"a\": \"b\"}'"`
	// +kubebuilder:default={1,2}
	Numbers []int32 `json:"numbers,omitempty" crd:"default='[1, 2]'"`
	Bytes   []byte  `json:"bytes,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf || self != 'x'",message="it's final"
	Ruled     string    `json:"ruled,omitempty" crd:"rule='self == oldSelf || self != ''x''',message='it''s final'"`
	Point     Point     `json:"point"`
	Path      []Point   `json:"path,omitempty"`
	Address   Address   `json:"address"`
	Addresses []Address `json:"addresses,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Object *runtime.RawExtension `json:"object,omitempty" crd:"embeddedResource"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Loose Common `json:"loose,omitzero" crd:"preserveUnknownFields"`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Anything Common `json:"anything,omitzero" crd:"type=any"`

	Way     *Way                         `json:"way,omitempty"`
	Ways    []Way                        `json:"ways,omitempty"`
	Time    metav1.Time                  `json:"time,omitempty"`
	Micro   *metav1.MicroTime            `json:"micro,omitempty"`
	Timeout *metav1.Duration             `json:"timeout,omitempty"`
	Either  *intstr.IntOrString          `json:"either,omitempty"`
	Memory  resource.Quantity            `json:"memory,omitempty"`
	Limits  map[string]resource.Quantity `json:"limits,omitempty"`
	Choose  *metav1.LabelSelector        `json:"choose,omitempty"`
}

// ShopStatus is what was observed.
type ShopStatus struct {
	Ready bool `json:"ready,omitempty" crd:"column"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Shop has fields of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=sh,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:selectablefield:JSONPath=".spec.name"
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=".spec.name"
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=".status.ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:metadata:labels="team=shops"
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShopSpec   `json:"spec"`
	Status            ShopStatus `json:"status,omitempty"`
}

// Definition returns what the markers of Shop say.
func (Shop) Definition() kube.Definition {
	return kube.Definition{
		Group: "compared.example.com", Version: "v1", Kind: "Shop", ShortNames: []string{"sh"}, Categories: []string{"all"},
		Labels:      map[string]string{"team": "shops"},
		Annotations: map[string]string{"helm.sh/resource-policy": "keep"},
	}
}

// RunnerSpec has fields of types of k8s.io/api.
type RunnerSpec struct {
	Replicas  int32                           `json:"replicas"`
	Template  corev1.PodTemplateSpec          `json:"template"`
	Service   corev1.ServiceSpec              `json:"service,omitzero"`
	Claims    []corev1.PersistentVolumeClaim  `json:"claims,omitempty"`
	Secret    corev1.SecretReference          `json:"secret,omitzero"`
	Key       *corev1.SecretKeySelector       `json:"key,omitempty"`
	Object    *corev1.ObjectReference         `json:"object,omitempty"`
	Ingress   *networkingv1.IngressSpec       `json:"ingress,omitempty"`
	Policy    *networkingv1.NetworkPolicySpec `json:"policy,omitempty"`
	Env       []corev1.EnvVar                 `json:"env,omitempty"`
	Resources corev1.ResourceRequirements     `json:"resources,omitzero"`
	Volumes   []corev1.Volume                 `json:"volumes,omitempty"`
	Pull      []corev1.LocalObjectReference   `json:"pull,omitempty"`
	Tolerate  []corev1.Toleration             `json:"tolerate,omitempty"`
	Affinity  *corev1.Affinity                `json:"affinity,omitempty"`
}

// RunnerStatus is what was observed.
type RunnerStatus struct {
	Replicas int32  `json:"replicas"`
	Selector string `json:"selector,omitempty"`
}

// Runner has fields of types of k8s.io/api.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=runners
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'x'"
type Runner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              RunnerSpec   `json:"spec"`
	Status            RunnerStatus `json:"status,omitempty"`
}

// Definition returns what the markers of Runner say.
func (Runner) Definition() kube.Definition {
	return kube.Definition{Group: "compared.example.com", Version: "v1", Kind: "Runner", ClusterScoped: true,
		Scale: &kube.ScalePaths{Selector: ".status.selector"},
		Rules: []kube.Rule{{Rule: "self.metadata.name != 'x'"}}}
}
