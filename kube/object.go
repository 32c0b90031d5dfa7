package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is any Kubernetes object: it has metadata and a kind. Unlike runtime.Object it needs no
// DeepCopyObject, which would have to be generated.
type Object interface {
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

// ObjectOf is the constraint that *T is an Object. It is always inferred: callers name only
// T.
type ObjectOf[T any] interface {
	*T
	Object
}

// None is the status of a custom resource without one.
type None = struct{}

// CustomResource is a whole custom resource. Its Spec names the resource. Its Status is
// [None] if it has none.
//
//	type WebApp = kube.CustomResource[WebAppSpec, WebAppStatus]
type CustomResource[Spec Defined, Status any] struct {
	metav1.TypeMeta   `json:""`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitzero"`
}

// Definition returns the Definition of the Spec.
func (CustomResource[Spec, Status]) Definition() Definition {
	var spec Spec
	return spec.Definition()
}
