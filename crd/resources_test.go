package crd_test

import (
	"embed"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/yare-go/yare/kube"
)

//go:embed resources_test.go
var source embed.FS

// BookSpec describes a book.
type BookSpec struct {
	// Title is the title of the book.
	Title string `json:"title"`
	// Authors are those who wrote it.
	Authors []string `json:"authors,omitempty"`
}

func (BookSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.technosophos.com", Version: "v1", Kind: "Book", Source: source}
}

// Book is the whole resource.
type Book = kube.CustomResource[BookSpec, kube.None]

// MemberSpec describes a member.
type MemberSpec struct {
	// MemberOf is the team, if there is one.
	MemberOf string `json:"memberOf,omitempty"`
}

func (MemberSpec) Definition() kube.Definition {
	return kube.Definition{Group: "helloworld.apimeister.com", Version: "v1", Kind: "Member", Source: source}
}

type Member = kube.CustomResource[MemberSpec, kube.None]

// EchoSpec is the desired state of the echo.
type EchoSpec struct {
	// Replicas is how many servers answer.
	Replicas int32 `json:"replicas" crd:"minimum=0"`
}

func (EchoSpec) Definition() kube.Definition {
	return kube.Definition{
		Group: "example.com", Version: "v1", Kind: "Echo",
		Plural: "echoes", ShortNames: []string{"echo"},
	}
}

type Echo = kube.CustomResource[EchoSpec, kube.None]

// MyServiceSpec is the desired state of the service.
type MyServiceSpec struct {
	Replicas int32  `json:"replicas" crd:"minimum=0"`
	Image    string `json:"image"`
}

func (MyServiceSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "MyService"}
}

type MyService = kube.CustomResource[MyServiceSpec, kube.None]

// WebAppSpec is the desired state of the application.
type WebAppSpec struct {
	// Image is the container image to run.
	Image string `json:"image" crd:"column,minLength=1,selectable"`
	// Replicas is how many pods should run.
	Replicas int32 `json:"replicas" crd:"minimum=0"`
}

// WebAppStatus is the observed state.
type WebAppStatus struct {
	// AvailableReplicas is how many pods serve.
	AvailableReplicas int32 `json:"availableReplicas" crd:"column=Available"`
	// Ready is true when as many pods serve as should run.
	Ready      bool               `json:"ready" crd:"column"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (WebAppSpec) Definition() kube.Definition {
	return kube.Definition{
		Group: "example.com", Version: "v1", Kind: "WebApp",
		ShortNames: []string{"wa"}, Categories: []string{"all"},
		Scale:  &kube.ScalePaths{StatusReplicas: ".status.availableReplicas"},
		Labels: map[string]string{"team": "web"}, Annotations: map[string]string{"helm.sh/resource-policy": "keep"},
		Columns: []kube.Column{{Name: "Why", JSONPath: `.status.conditions[?(@.type=="Ready")].reason`, Wide: true}},
		Source:  source,
	}
}

// WebApp is a web application.
type WebApp = kube.CustomResource[WebAppSpec, WebAppStatus]

// CertificateSpec stands for a type of another module.
type CertificateSpec struct {
	SecretName string `json:"secretName"`
}

type certificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CertificateSpec `json:"spec,omitempty"`
	Status            struct {
		NotAfter *metav1.Time `json:"notAfter,omitempty"`
	} `json:"status,omitempty"`
}

// Certificate wraps a type that has no Definition.
type Certificate struct{ certificate }

func (Certificate) Definition() kube.Definition {
	return kube.Definition{Group: "certs.example.com", Version: "v1", Kind: "Certificate", ClusterScoped: true, Source: source}
}

// Phase is a step in a life.
//
//	Begin, End
type Phase string

// Common is shared by
// several specs.
type Common struct {
	// Owner is whom to ask.
	Owner string `json:"owner,omitempty"`
}

// PlantSpec has one of each.
//
// A second paragraph
// of two lines, about PlantStatus
//
// +marker:left=out
//
//nolint:all
type PlantSpec struct {
	Common
	Phase Phase `json:"phase" crd:"enum=Begin|End,default=Begin"`
	// Next overrules the comment of its type. There are two:
	//   - the first,
	//     long
	//   - the second
	Next     Phase `json:"next,omitempty"`
	Trailing int64 `json:"trailing,omitempty"` // is documented at the end of the line
	Nameless struct {
		// Depth is within a struct without a name.
		Depth uint8 `json:"depth" crd:"default=3"`
	} `json:"nameless" crd:"default='{}'"`
	Ports []Port `json:"ports" crd:"listType=map,listMapKey=name,maxItems=8"`
	// Limits are quantities.
	Limits   map[string]resource.Quantity `json:"limits,omitempty"`
	Target   *intstr.IntOrString          `json:"target,omitempty" crd:"default=http"`
	Timeout  *metav1.Duration             `json:"timeout,omitempty" crd:"default=30s"`
	Selector *metav1.LabelSelector        `json:"selector,omitempty"`
	Template *corev1.PodTemplateSpec      `json:"template,omitempty"`
	Free     map[string]any               `json:"free,omitempty"`
	Min      int32                        `json:"min,omitempty" crd:"minimum=0"`
	Max      int32                        `json:"max,omitempty" crd:"minimum=0,rule='self <= 100',message='at most a hundred'"`
	Code     string                       `json:"code,omitempty" crd:"pattern='^[a-z]+(,[a-z]+)*$',maxLength=8"`
	Null     *string                      `json:"null,omitempty" crd:"nullable"`
	Seeds    int64                        `json:"seeds,omitempty" crd:"minimum=-9223372036854774784,maximum=9223372036854774784"`
	Water    *Water                       `json:"water,omitempty"`
	Pots     int32                        `json:"pots,omitempty" crd:"exclusiveMinimum=-2147483648,maximum=2147483647"`
}

// Port is a port.
type Port struct {
	Name   string `json:"name" crd:"maxLength=15"`
	Number int32  `json:"number" crd:"minimum=1,maximum=65535"`
}

// Water is where the water comes from.
type Water struct {
	Rain *int32 `json:"rain,omitempty"`
	Tap  *int32 `json:"my-tap,omitempty"`
	Well *int32 `json:"while,omitempty"`
	// Lake and Sea are another choice.
	Lake *string `json:"lake,omitempty"`
	Sea  string  `json:"a.sea,omitempty"`
}

// CRDTag has the keys of three unions.
func (Water) CRDTag() string {
	return "exactlyOneOf=rain|my-tap|while,atMostOneOf=lake|a.sea,atLeastOneOf=lake|rain"
}

// Rules are about several fields.
func (PlantSpec) Rules() []kube.Rule {
	return []kube.Rule{{Rule: "!has(self.min) || !has(self.max) || self.min <= self.max", Message: "min must not be above max"}}
}

func (PlantSpec) Definition() kube.Definition {
	return kube.Definition{
		Group: "plants.example.com", Version: "v1", Kind: "Plant", Source: source,
		Rules: []kube.Rule{{Rule: "self.metadata.name != 'weed'", Message: "weeds have no place here"}},
	}
}

// Plant grows.
type Plant = kube.CustomResource[PlantSpec, kube.None]

// OldPlantSpec is the version before.
type OldPlantSpec struct {
	Code string `json:"code,omitempty"`
}

func (OldPlantSpec) Definition() kube.Definition {
	return kube.Definition{Group: "plants.example.com", Version: "v1beta1", Kind: "Plant", Deprecated: "plants.example.com/v1beta1 is old; use v1"}
}

// OldestPlantSpec is a version that may be stored, and is not served.
type OldestPlantSpec struct {
	Code string `json:"code,omitempty"`
}

func (OldestPlantSpec) Definition() kube.Definition {
	return kube.Definition{Group: "plants.example.com", Version: "v1alpha1", Kind: "Plant", NotServed: true}
}

type OldestPlant = kube.CustomResource[OldestPlantSpec, kube.None]

type OldPlant = kube.CustomResource[OldPlantSpec, kube.None]
