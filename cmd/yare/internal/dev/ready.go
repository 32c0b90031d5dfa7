package dev

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube/readiness"
)

// unreadyReason returns why an object is not ready yet, or "" if the object is ready. definitions are the operator's
// own CRDs. A custom resource whose definition has status.ready or conditions is not ready before it has a status. Any
// other object whose readiness is unknown is ready when it exists.
func unreadyReason(object unstructured.Unstructured, definitions []unstructured.Unstructured) string {
	r := readiness.Of(&object)
	switch r.State {
	case readiness.Ready:
		return ""
	case readiness.Unknown:
	case readiness.Progressing, readiness.Failed:
		return r.Message + " (" + r.Reason + ")"
	}
	field := readinessField(object, definitions)
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	switch {
	case field == "":
		return ""
	case len(status) == 0:
		return "it has no status yet"
	case field == "ready":
		return "status.ready is not set"
	}
	return ""
}

// readinessField returns the field that, by the definition of a custom resource, shows its
// readiness in the status: "ready", "conditions" or "".
func readinessField(object unstructured.Unstructured, definitions []unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	for _, d := range definitions {
		group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		if group != gvk.Group || kind != gvk.Kind {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(map[string]any)
			if version["name"] != gvk.Version {
				continue
			}
			fields, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "status", "properties")
			for _, name := range []string{"ready", "conditions"} {
				if _, ok := fields[name]; ok {
					return name
				}
			}
		}
	}
	return ""
}

// objectName returns the name of an object in messages.
func objectName(object unstructured.Unstructured) string {
	return strings.ToLower(object.GetKind()) + "/" + object.GetName()
}
