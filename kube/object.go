package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is any Kubernetes object: metadata, and a place for its kind. It asks less than
// runtime.Object, which wants a DeepCopyObject that somebody has to generate.
type Object interface {
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

// ObjectOf says that *T is an Object. It is always inferred: callers name T only.
type ObjectOf[T any] interface {
	*T
	Object
}

// None is the status of a custom resource without one.
type None = struct{}

// CustomResource is a whole custom resource, made from its spec, which says which
// resource it is, and its status, which is [None] if it has none.
//
//	type WebApp = kube.CustomResource[WebAppSpec, WebAppStatus]
type CustomResource[Spec Defined, Status any] struct {
	metav1.TypeMeta   `json:""`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitzero"`
}

// Definition is the one of the Spec.
func (CustomResource[Spec, Status]) Definition() Definition {
	var spec Spec
	return spec.Definition()
}
