package workload

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// WebAppSpec is the desired state of a web application.
type WebAppSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas" crd:"minimum=0"`
}

// WebAppStatus is the observed state of a web application.
type WebAppStatus struct {
	AvailableReplicas int32              `json:"availableReplicas"`
	Ready             bool               `json:"ready"`
	Conditions        []metav1.Condition `json:"conditions,omitempty"`
}

// Definition returns the definition of WebApps.
func (WebAppSpec) Definition() kube.Definition {
	return kube.Definition{Group: "bench.example.com", Version: "v1", Kind: "WebApp"}
}

// WebApp is a web application: a Deployment that its operator applies.
type WebApp = kube.CustomResource[WebAppSpec, WebAppStatus]

// NewWebApp returns the i-th WebApp in a namespace. WebApps have one to three replicas.
func NewWebApp(namespace string, i int) *WebApp {
	s := NewShop(i)
	return &WebApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("web-%d", i), Labels: s.Labels},
		Spec:       WebAppSpec{Image: s.Spec.Image, Replicas: 1 + int32(i%3)},
	}
}
