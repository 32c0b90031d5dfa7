package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersion is the group and the version of Pages.
var groupVersion = schema.GroupVersion{Group: "book.example.com", Version: "v1"}

// Page is what the operators reconcile.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PageSpec   `json:"spec"`
	Status            PageStatus `json:"status,omitempty"`
}

// PageSpec is the desired state of a Page.
type PageSpec struct {
	Size int32 `json:"size"`
}

// PageStatus is the observed state of a Page.
type PageStatus struct {
	Size  int32 `json:"size,omitempty"`
	Ready bool  `json:"ready,omitempty"`
}

// DeepCopyObject returns a copy.
func (p *Page) DeepCopyObject() runtime.Object {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// PageList is a list of Pages.
type PageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Page `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *PageList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Page))
	}
	return &c
}
