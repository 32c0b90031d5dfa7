package kube

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StandsForAnyKind reports whether a Go type stands for objects of any kind: it is
// unstructured.Unstructured or metav1.PartialObjectMetadata.
func StandsForAnyKind(t reflect.Type) bool {
	// Naming Unstructured here would link it into every program.
	return t == reflect.TypeFor[metav1.PartialObjectMetadata]() ||
		t.PkgPath() == unstructuredPackage && t.Name() == "Unstructured"
}

const unstructuredPackage = "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// TypeOfKind returns the Type with which the objects of r are read into objects like obj, which must stand
// for any kind. The server sends only the metadata of a PartialObjectMetadata. TypeOfKind returns an error
// if obj is of one kind, or if r lacks its version, kind or plural.
func TypeOfKind(obj Object, r Resource) (Type, error) {
	t := reflect.TypeOf(obj).Elem()
	if !StandsForAnyKind(t) {
		return Type{}, fmt.Errorf("%s is not a type for any kind, so it takes no resource such as %s", TypeName(t), r)
	}
	kind := Type{Resource: r, Go: t}
	if t == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		kind.Representation = MetadataOnly
	}
	return kind, complete(r)
}
