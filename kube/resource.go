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

// Resource identifies a kind as URLs need it. It is comparable.
type Resource struct {
	schema.GroupVersionKind
	// Plural is the name in URLs, such as deployments.
	Plural string
	// ClusterScoped is true for a resource that lives outside of namespaces.
	ClusterScoped bool
}

// GroupResource returns the resource without its version, as RBAC and errors name it.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// IsSecret reports whether r is the resource of Secrets. Their contents are neither kept nor
// shown unless the program asks for them.
func (r Resource) IsSecret() bool { return r.Group == "" && r.Plural == "secrets" }

// isReview reports whether the objects of the resource are questions to the server, such as a
// SubjectAccessReview. A create asks the question. A review has no name.
func (r Resource) isReview() bool {
	return r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io"
}

// String returns the name that kubectl uses, such as deployments.apps.
func (r Resource) String() string { return r.GroupResource().String() }

// Ref names one object. An empty Cluster means the home cluster. An empty UID means any
// object of that name.
type Ref struct {
	Cluster   string
	Resource  Resource
	Namespace string
	Name      string
	UID       types.UID
}

// String returns the resource and the name, as kubectl would write them.
func (r Ref) String() string {
	return r.Resource.String() + " " + quoted(r.Namespace, r.Name)
}

// Type is a Go type and the resource it stands for.
type Type struct {
	Resource Resource
	// Definition is set for types that define themselves, and nil for all others.
	Definition *Definition
	// Go is the struct type.
	Go reflect.Type
	// Representation is the form in which the type is read: Full, the form of a projection (see
	// [Projected]), or MetadataOnly for the PartialObjectMetadata of [TypeOfKind].
	Representation Representation
}

// HasStatus reports whether the type has a status that is not [None].
func (t Type) HasStatus() bool {
	f, ok := t.Go.FieldByName("Status")
	return ok && f.Type != reflect.TypeFor[None]()
}

// TypeOf returns the Type of a Go type. The resource comes from its Definition or its Projection
// or, for a type of k8s.io/api, from a table. The error of any other type names what to write
// instead.
func TypeOf[T any, P ObjectOf[T]]() (Type, error) {
	return typeOf(reflect.TypeFor[T](), any(P(new(T))))
}

// ResourceOf returns the resource of T.
func ResourceOf[T any, P ObjectOf[T]]() (Resource, error) {
	t, err := TypeOf[T, P]()
	return t.Resource, err
}

// TypeOfObject returns the Type of obj as [TypeOf] does, for a type that is known only at run time.
// It returns an error for unstructured.Unstructured and PartialObjectMetadata, which have no
// resource by themselves: see [TypeOfKind].
func TypeOfObject(obj Object) (Type, error) {
	t := reflect.TypeOf(obj)
	if t == nil || t.Kind() != reflect.Pointer {
		return Type{}, fmt.Errorf("%v is no pointer to an object", t)
	}
	return typeOf(t.Elem(), reflect.New(t.Elem()).Interface())
}

// typeOfLive returns the Type of obj, or an error if obj is nil.
func typeOfLive(verb Verb, obj Object) (Type, error) {
	t, err := TypeOfObject(obj)
	if err == nil && reflect.ValueOf(obj).IsNil() {
		err = fmt.Errorf("%s %s: the object is nil", verb, t.Resource)
	}
	return t, err
}

// typeOf returns the Type of t. zero is a pointer to the zero value of t.
func typeOf(t reflect.Type, zero any) (Type, error) {
	if p, ok := zero.(Projected); ok {
		return projectionOf(t, p)
	}
	if d, ok := zero.(Defined); ok {
		definition, err := definitionOf(d)
		if err == nil {
			err = checkEmbedding(t)
		}
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
	if t.PkgPath() == unstructuredPackage {
		return Type{}, fmt.Errorf("%s stands for any kind: use kube.Dynamic and name the resource", TypeName(t))
	}
	return Type{}, fmt.Errorf("the resource of %s is not known: wrap it, as in type %s struct{ %s }, and give that a Definition method",
		TypeName(t), t.Name(), TypeName(t))
}

// checkEmbedding returns an error if t embeds a custom resource and has other JSON fields.
func checkEmbedding(t reflect.Type) error {
	embedded := ""
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && isCustomResource(f.Type) {
			embedded = f.Name
		}
	}
	if embedded == "" {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name != embedded && (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-" {
			return fmt.Errorf("the field %s stands beside the embedded %s: put it into the Spec or the Status, or tag it json:\"-\"", f.Name, embedded)
		}
	}
	return nil
}

// isCustomResource reports whether t is a [CustomResource], or a type that was declared from one.
func isCustomResource(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.PkgPath() == reflect.TypeFor[Definition]().PkgPath() && strings.HasPrefix(f.Type.Name(), "DefinedBy[") {
			return true
		}
	}
	return false
}

// definitionOf returns the Definition of a zero value. A panic of the method, such as for an embedded
// pointer that is nil, becomes an error.
func definitionOf(d Defined) (definition Definition, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(errors.New("its Definition method must work on the zero value"), fmt.Errorf("panic: %v", p))
		}
	}()
	return d.Definition(), nil
}

// TypeName returns the name of a Go type as its user knows it. A custom resource is named
// after its spec.
func TypeName(t reflect.Type) string {
	name := t.String()
	if strings.HasPrefix(name, "kube.CustomResource[") {
		if spec, ok := t.FieldByName("Spec"); ok {
			return "the custom resource of " + spec.Type.String()
		}
	}
	return name
}

// quoted returns namespace and name as errors show them.
func quoted(namespace, name string) string {
	if namespace == "" {
		return fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("%q", namespace+"/"+name)
}
