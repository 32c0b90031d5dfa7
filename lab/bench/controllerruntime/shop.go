package main

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Shop is the custom resource of the benchmarks.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShopSpec   `json:"spec"`
	Status ShopStatus `json:"status,omitempty"`
}

// ShopSpec is the desired state of a Shop.
type ShopSpec struct {
	Image    string            `json:"image"`
	Replicas int32             `json:"replicas"`
	Host     string            `json:"host"`
	Env      []Variable        `json:"env,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

// Variable is one variable of the environment.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ShopStatus is the observed state of a Shop.
type ShopStatus struct {
	AvailableReplicas int32              `json:"availableReplicas"`
	Conditions        []metav1.Condition `json:"conditions,omitempty"`
}

// ShopList is a list of Shops.
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Shop `json:"items"`
}

// DeepCopyInto copies s, as the code of a generator would.
func (s *Shop) DeepCopyInto(to *Shop) {
	*to = *s
	s.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	to.Spec.Env = slices.Clone(s.Spec.Env)
	to.Spec.Limits = maps.Clone(s.Spec.Limits)
	to.Status.Conditions = slices.Clone(s.Status.Conditions)
}

// DeepCopyObject makes a Shop a runtime.Object.
func (s *Shop) DeepCopyObject() runtime.Object {
	to := new(Shop)
	s.DeepCopyInto(to)
	return to
}

// DeepCopyObject makes a ShopList a runtime.Object.
func (l *ShopList) DeepCopyObject() runtime.Object {
	to := &ShopList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: make([]Shop, len(l.Items))}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&to.Items[i])
	}
	return to
}
