package kube

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resource is what a URL needs to know of a kind. It is comparable.
type Resource struct {
	schema.GroupVersionKind
	// Plural is the name in URLs, such as deployments.
	Plural string
	// ClusterScoped is true for a resource that lives outside of namespaces.
	ClusterScoped bool
}

// GroupResource is the resource without its version: what RBAC and errors name.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// HoldsSecrets tells a resource whose contents nobody keeps or shows who was not asked to.
func (r Resource) IsSecret() bool { return r.Group == "" && r.Plural == "secrets" }

// isReview tells a resource whose objects are questions, such as a SubjectAccessReview: to
// create one is to ask it, and it has no name.
func (r Resource) isReview() bool {
	return r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io"
}

// String is the name that kubectl uses, such as deployments.apps.
func (r Resource) String() string { return r.GroupResource().String() }

// Ref names one object. An empty Cluster is the home cluster; an empty UID is any object
// of that name.
type Ref struct {
	Cluster   string
	Resource  Resource
	Namespace string
	Name      string
	UID       types.UID
}

// String is the resource and the name, as kubectl would write them.
func (r Ref) String() string {
	return r.Resource.String() + " " + quoted(r.Namespace, r.Name)
}

// Type is a Go type and the resource it stands for.
type Type struct {
	Resource Resource
	// Definition is set for types that define themselves.
	Definition *Definition
	// Go is the struct type.
	Go reflect.Type
}

// HasStatus is false only for a type that has no status, or whose status is [None].
func (t Type) HasStatus() bool {
	f, ok := t.Go.FieldByName("Status")
	return ok && f.Type != reflect.TypeFor[None]()
}

// TypeOf finds the resource of a Go type: by its Definition, or, for a type of
// k8s.io/api, by a table. Its error says what to write instead.
func TypeOf[T any, P ObjectOf[T]]() (Type, error) {
	return typeOf(reflect.TypeFor[T](), any(P(new(T))))
}

// ResourceOf is the resource of T.
func ResourceOf[T any, P ObjectOf[T]]() (Resource, error) {
	t, err := TypeOf[T, P]()
	return t.Resource, err
}

// TypeOfObject is [TypeOf] for a type that is known at run time only. An
// unstructured.Unstructured or PartialObjectMetadata has no resource by itself.
func TypeOfObject(obj Object) (Type, error) {
	t := reflect.TypeOf(obj)
	if t == nil || t.Kind() != reflect.Pointer {
		return Type{}, fmt.Errorf("%v is no pointer to an object", t)
	}
	return typeOf(t.Elem(), reflect.New(t.Elem()).Interface())
}

// typeOfLive is [TypeOfObject] of an object that is about to be read from.
func typeOfLive(verb Verb, obj Object) (Type, error) {
	t, err := TypeOfObject(obj)
	if err == nil && reflect.ValueOf(obj).IsNil() {
		err = fmt.Errorf("%s %s: the object is nil", verb, t.Resource)
	}
	return t, err
}

// typeOf is the Type of t, of which zero is a pointer to the zero value.
func typeOf(t reflect.Type, zero any) (Type, error) {
	if d, ok := zero.(Defined); ok {
		definition, err := definitionOf(d)
		if err != nil {
			return Type{}, fmt.Errorf("%s: %w", TypeName(t), err)
		}
		r, err := definition.Resource()
		if err != nil {
			return Type{}, fmt.Errorf("%s: %w", TypeName(t), err)
		}
		return Type{Resource: r, Definition: &definition, Go: t}, nil
	}
	if pkg, ok := strings.CutPrefix(t.PkgPath(), "k8s.io/api/"); ok {
		if r, ok := builtinResource(pkg, t.Name()); ok {
			return Type{Resource: r, Go: t}, nil
		}
		return Type{}, fmt.Errorf("%s: an API server does not serve this type as a resource of its own", TypeName(t))
	}
	if t == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return Type{}, fmt.Errorf("%s stands for any kind: use kube.Metadata and name the resource", TypeName(t))
	}
	if t.PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured" {
		return Type{}, fmt.Errorf("%s stands for any kind: use kube.Dynamic and name the resource", TypeName(t))
	}
	return Type{}, fmt.Errorf("the resource of %s is not known: wrap it, as in type %s struct{ %s }, and give that a Definition method",
		TypeName(t), t.Name(), TypeName(t))
}

// definitionOf calls Definition on a zero value, which may hold a nil embedded pointer.
func definitionOf(d Defined) (definition Definition, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(errors.New("its Definition method must work on the zero value"), fmt.Errorf("panic: %v", p))
		}
	}()
	return d.Definition(), nil
}

// TypeName is the name of a Go type as its user knows it: the whole of a custom resource
// is named after its spec.
func TypeName(t reflect.Type) string {
	name := t.String()
	if strings.HasPrefix(name, "kube.CustomResource[") {
		if spec, ok := t.FieldByName("Spec"); ok {
			return "the custom resource of " + spec.Type.String()
		}
	}
	return name
}

// quoted is namespace and name as errors show them.
func quoted(namespace, name string) string {
	if namespace == "" {
		return fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("%q", namespace+"/"+name)
}
