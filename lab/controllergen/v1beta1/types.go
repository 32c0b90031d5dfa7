// Package v1beta1 has an old version of a kind.
//
// +groupName=compared.example.com
package v1beta1

import (
	"github.com/yare-go/yare/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShopSpec has one field.
type ShopSpec struct {
	Name string `json:"name,omitempty"`
}

// Shop is no longer served.
//
// +kubebuilder:object:root=true
// +kubebuilder:unservedversion
// +kubebuilder:deprecatedversion:warning="use v1"
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShopSpec `json:"spec,omitempty"`
}

// Definition returns what the markers of Shop say.
func (Shop) Definition() kube.Definition {
	return kube.Definition{
		Group: "compared.example.com", Version: "v1beta1", Kind: "Shop", NotServed: true, Deprecated: "use v1",
	}
}
