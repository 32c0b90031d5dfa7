package dev

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unreadyReason returns why an object is not ready yet, or "" if the object is ready. definitions are the operator's
// own CRDs.
//
// The object's status decides: a rollout for Deployments and their like, the condition Ready or
// Available, status.ready. A custom resource whose definition has status.ready or conditions is
// not ready before it has a status. An object without any of these is ready when it exists.
func unreadyReason(object unstructured.Unstructured, definitions []unstructured.Unstructured) string {
	if object.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	status, hasStatus, _ := unstructured.NestedMap(object.Object, "status")
	if object.GroupVersionKind().Group == "apps" {
		if reason, hasRollout := rolloutReason(object, status); hasRollout {
			return reason
		}
	}
	if generation, ok := asInt(status["observedGeneration"]); ok && generation < object.GetGeneration() {
		return "its newest change has not been looked at yet"
	}
	switch object.GetKind() {
	case "Pod":
		if phase, _, _ := unstructured.NestedString(status, "phase"); phase == "Succeeded" {
			return ""
		}
		return conditionReason(status, "Ready")
	case "Job":
		return conditionReason(status, "Complete")
	}
	if ready, ok := status["ready"]; ok {
		if ready != true {
			return fmt.Sprintf("status.ready is %v", ready)
		}
		return ""
	}
	for _, name := range []string{"Ready", "Available"} {
		if hasCondition(status, name) {
			return conditionReason(status, name)
		}
	}
	if field := readinessField(object, definitions); field != "" {
		if !hasStatus || len(status) == 0 {
			return "it has no status yet"
		}
		if field == "ready" {
			return "status.ready is not set"
		}
	}
	return ""
}

// rolloutReason returns why an object of the group apps is not rolled out, or "" if the object is rolled out. It
// reports false for kinds without a rollout.
func rolloutReason(object unstructured.Unstructured, status map[string]any) (reason string, hasRollout bool) {
	number := func(field string) int64 {
		n, _ := asInt(status[field])
		return n
	}
	wanted := int64(1)
	if spec, _, _ := unstructured.NestedMap(object.Object, "spec"); spec != nil {
		if n, ok := asInt(spec["replicas"]); ok {
			wanted = n
		}
	}
	if n, _ := asInt(status["observedGeneration"]); n < object.GetGeneration() {
		return "its newest change has not been looked at yet", true
	}
	var have int64
	switch object.GetKind() {
	case "Deployment":
		if extra := number("replicas") - number("updatedReplicas"); extra > 0 {
			return fmt.Sprintf("%d old replicas still run", extra), true
		}
		have = min(number("updatedReplicas"), number("availableReplicas"))
	case "StatefulSet":
		have = number("readyReplicas")
		if status["updateRevision"] != status["currentRevision"] {
			return "its rollout is not complete", true
		}
	case "ReplicaSet":
		have = number("availableReplicas")
	case "DaemonSet":
		wanted, have = number("desiredNumberScheduled"), min(number("updatedNumberScheduled"), number("numberAvailable"))
	default:
		return "", false
	}
	if have < wanted {
		return fmt.Sprintf("%d of %d replicas are available", have, wanted), true
	}
	return "", true
}

func asInt(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

func conditions(status map[string]any) []map[string]any {
	list, _ := status["conditions"].([]any)
	var out []map[string]any
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			out = append(out, c)
		}
	}
	return out
}

func hasCondition(status map[string]any, name string) bool {
	for _, c := range conditions(status) {
		if c["type"] == name {
			return true
		}
	}
	return false
}

// conditionReason returns why the condition of this name is not True, or "" if the condition is True.
func conditionReason(status map[string]any, name string) string {
	for _, c := range conditions(status) {
		if c["type"] != name {
			continue
		}
		if c["status"] == "True" {
			return ""
		}
		reason := fmt.Sprintf("its condition %s is %v", name, c["status"])
		for _, field := range []string{"reason", "message"} {
			if text, _ := c[field].(string); text != "" {
				reason += ", " + text
			}
		}
		return reason
	}
	return "it has no condition " + name + " yet"
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
