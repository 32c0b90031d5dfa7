package ident

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnstructuredPackage is the package of unstructured.Unstructured.
const UnstructuredPackage = "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// StandsForAnyKind reports whether a Go type stands for objects of any kind: it is
// unstructured.Unstructured or metav1.PartialObjectMetadata.
func StandsForAnyKind(t reflect.Type) bool {
	// Naming Unstructured here would link it into every program.
	return t == reflect.TypeFor[metav1.PartialObjectMetadata]() ||
		t.PkgPath() == UnstructuredPackage && t.Name() == "Unstructured"
}

// GoTypeName returns the name of a Go type as its user knows it. A custom resource is named
// after its spec.
func GoTypeName(t reflect.Type) string {
	name := t.String()
	if strings.HasPrefix(name, "kube.CustomResource[") {
		if spec, ok := t.FieldByName("Spec"); ok {
			return "the custom resource of " + spec.Type.String()
		}
	}
	return name
}
