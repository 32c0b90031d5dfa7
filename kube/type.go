package kube

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/internal/builtin"
	"github.com/yare-go/yare/kube/wire"
)

// Type is a Go type and the resource it stands for.
type Type struct {
	Resource wire.Resource
	// Definition is set for types that define themselves, and nil for all others.
	Definition *Definition
	// Go is the struct type.
	Go reflect.Type
	// Representation is how the type is read: Full, the representation of a projection (see
	// [Projected]), or MetadataOnly for the PartialObjectMetadata of [TypeOfKind].
	Representation wire.Representation
}

// TypeOf returns the Type of a Go type. The resource comes from its Definition or its Projection
// or, for a type of k8s.io/api, from a table. The error of any other type names what to write
// instead.
func TypeOf[T any, P ObjectOf[T]]() (Type, error) {
	return typeOf(reflect.TypeFor[T](), any(P(new(T))))
}

// ResourceOf returns the resource of T.
func ResourceOf[T any, P ObjectOf[T]]() (wire.Resource, error) {
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

// TypeOfKind returns the Type of the objects of r with the Go type of obj, which must stand for any kind.
// The server sends only the metadata of a PartialObjectMetadata. TypeOfKind returns an error if obj is of
// one kind, or if r lacks its version, kind or plural.
func TypeOfKind(obj Object, r wire.Resource) (Type, error) {
	t := reflect.TypeOf(obj).Elem()
	if !ident.StandsForAnyKind(t) {
		return Type{}, fmt.Errorf("%s is not a type for any kind, so it takes no resource such as %s", ident.GoTypeName(t), r)
	}
	kind := Type{Resource: r, Go: t}
	if t == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		kind.Representation = wire.MetadataOnly
	}
	return kind, checkResource(r)
}

// HasStatus reports whether the type has a status that is not [None].
func (t Type) HasStatus() bool {
	f, ok := t.Go.FieldByName("Status")
	return ok && f.Type != reflect.TypeFor[None]()
}

// Streams returns the streams of the objects of t that match, as [API.Streams] does: one for each namespace
// that the client is narrowed to, or one for all namespaces.
func (t Type) Streams(c *Client, selectors ...Selector) ([]wire.Stream, error) {
	return t.target(nil).in(c, "").streams(c, selectors)
}

// checkGoType returns an error if t is the Type of another Go type than want.
func (t Type) checkGoType(want reflect.Type) error {
	if t.Go == want {
		return nil
	}
	return fmt.Errorf("%s is not the type of %s, but of %v", t.Resource, ident.GoTypeName(want), t.Go)
}

// target returns the target of the objects of t, without a namespace. err is what is wrong with t, or nil.
func (t Type) target(err error) target {
	to := target{resource: t.Resource, representation: t.Representation, err: err}
	if err == nil {
		isAnyKind := ident.StandsForAnyKind(t.Go)
		to.hasStatus = isAnyKind && t.Representation == wire.Full || t.HasStatus()
		to.hasStatusSubresource = to.hasStatus && !isAnyKind && (t.Definition == nil || !t.Definition.Foreign)
	}
	return to
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
			return Type{}, fmt.Errorf("%s: %w", ident.GoTypeName(t), err)
		}
		r, err := definition.Resource()
		if err != nil {
			return Type{}, fmt.Errorf("%s: %w", ident.GoTypeName(t), err)
		}
		return Type{Resource: r, Definition: &definition, Go: t}, nil
	}
	if pkg, ok := strings.CutPrefix(t.PkgPath(), "k8s.io/api/"); ok {
		if r, ok := builtin.Resource(pkg, t.Name()); ok {
			return Type{Resource: r, Go: t}, nil
		}
		return Type{}, fmt.Errorf("%s: an API server does not serve this type as a resource of its own", ident.GoTypeName(t))
	}
	if t == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return Type{}, fmt.Errorf("%s stands for any kind: use kube.Metadata and name the resource", ident.GoTypeName(t))
	}
	if t.PkgPath() == ident.UnstructuredPackage {
		return Type{}, fmt.Errorf("%s stands for any kind: use kube.Dynamic and name the resource", ident.GoTypeName(t))
	}
	return Type{}, fmt.Errorf(
		"the resource of %s is not known: wrap it, as in type %s struct{ %s }, and give that a Definition method",
		ident.GoTypeName(t), t.Name(), ident.GoTypeName(t))
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
			return fmt.Errorf(
				"the field %s stands beside the embedded %s: put it into the Spec or the Status, or tag it json:\"-\"",
				f.Name, embedded)
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
		if f.Anonymous && f.Type.PkgPath() == reflect.TypeFor[Definition]().PkgPath() &&
			strings.HasPrefix(f.Type.Name(), "DefinedBy[") {
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
