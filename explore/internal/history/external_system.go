package history

import (
	"maps"
	"reflect"
	"strings"
	"time"
)

// ExternalSystemResource is the resource of the object that stands for the external system of a run: see
// [Recording.RecordExternalSystem]. Files of findings have the value.
const ExternalSystemResource = "outside"

// externalSystemManager is the field manager of that object. It counts as the operator.
const externalSystemManager = "external-system"

// newExternalSystemVersion returns the version of the object that has a text about an external system. Each line of the
// text is a member of data, with the number of times that the line occurs. So the order of the lines does not count,
// and a difference names a line.
func newExternalSystemVersion(namespace, text string) Version {
	lines := make(map[string]any)
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			count, _ := lines[line].(int64)
			lines[line] = count + 1
		}
	}
	return Version{
		Resource: ExternalSystemResource, Namespace: namespace, Name: "system", UID: "outside", At: time.Now(),
		Manager: externalSystemManager,
		Object: map[string]any{
			"apiVersion": "explore.yare.dev/v1", "kind": "ExternalSystem", "data": lines,
			"metadata": map[string]any{"name": "system", "namespace": namespace, "managedFields": []any{map[string]any{
				"manager": externalSystemManager, "operation": "Update", "fieldsV1": map[string]any{"f:data": map[string]any{}},
			}}},
		},
	}
}

// hasSameLines reports whether two versions of the object have the same lines.
func hasSameLines(a, b Version) bool {
	left, _ := a.Object["data"].(map[string]any)
	right, _ := b.Object["data"].(map[string]any)
	return maps.EqualFunc(left, right, func(x, y any) bool { return reflect.DeepEqual(x, y) })
}
