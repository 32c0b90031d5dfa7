package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
// [None] if it has none. An author gives it a name in one of two ways. The first is an alias:
//
//	type WebApp = kube.CustomResource[WebAppSpec, WebAppStatus]
//
// The second is a defined type, without the equals sign. A defined type can have methods:
//
//	type WebApp kube.CustomResource[WebAppSpec, WebAppStatus]
//
//	func (w *WebApp) IsPaused() bool { return w.Annotations["example.com/paused"] == "true" }
//
// Both are used alike. Only the alias is a runtime.Object by itself, because a defined type has no methods
// of CustomResource. One line makes the defined type a runtime.Object: see [DeepCopy].
//
// A struct that embeds a custom resource is a custom resource too. With it an author gives a custom
// resource of another module another Definition. Other JSON fields beside the embedded custom resource
// are an error, because they would stand beside spec and status.
type CustomResource[Spec Defined, Status any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	DefinedBy[Spec]   `json:"-"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitzero"`
}

// DeepCopyObject returns a copy of w. With this method w is a runtime.Object, which client-go and
// controller-runtime require. See [DeepCopy].
func (w *CustomResource[Spec, Status]) DeepCopyObject() runtime.Object { return DeepCopy(w) }

// CustomResourceList is a list of custom resources, for libraries that need a type for lists. The
// lists of an [API] need none. T is a custom resource.
//
//	scheme.AddKnownTypeWithName(version.WithKind("WebApp"), &WebApp{})
//	scheme.AddKnownTypeWithName(version.WithKind("WebAppList"), &kube.CustomResourceList[WebApp]{})
type CustomResourceList[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []T `json:"items"`
}

// DeepCopyObject returns a copy of l. With this method l is a runtime.Object.
func (l *CustomResourceList[T]) DeepCopyObject() runtime.Object { return DeepCopy(l) }

// DefinedBy gives the struct that embeds it the Definition of a Spec. It has no content. A
// [CustomResource] embeds DefinedBy because the methods of an embedded field, unlike those of
// CustomResource, are also methods of a type that an author declares from CustomResource.
type DefinedBy[Spec Defined] struct{}

// Definition returns the Definition of the Spec.
func (DefinedBy[Spec]) Definition() Definition {
	var spec Spec
	return spec.Definition()
}
