package conversion

import (
	"bytes"
	"slices"

	"github.com/yare-go/yare/crd"
)

// The encoder writes {} and null for zero fields of a Go type that stand in no object that a user has written, such as
// resources of a container. Nearly each object would need an annotation because of them. So they are left out where the
// schema does not require the field.
//
// For example, a container with a volume is encoded as {"name":"a","resources":{},"emptyDir":{}}. Without the zero fields
// of the Go type it is {"name":"a","emptyDir":{}}: the pointer emptyDir is set. The result is the second one.

// hasEmptyMember reports whether a text can have a member with the value {} or null. It can be wrong about a text in a
// string.
func hasEmptyMember(text []byte) bool {
	return bytes.Contains(text, []byte(":{}")) || bytes.Contains(text, []byte(":null"))
}

// removeZeros removes from v, a new value, the members that are {} or null, that nonZero lacks, and that s does not require.
func removeZeros(s *crd.Schema, v, nonZero any) {
	switch v := v.(type) {
	case map[string]any:
		other, _ := nonZero.(map[string]any)
		for name, value := range v {
			_, isThere := other[name]
			switch inner, isObject := value.(map[string]any); {
			case isThere:
				removeZeros(propertyOf(s, name), value, other[name])
			case value != nil && (!isObject || len(inner) > 0):
			case s == nil || !slices.Contains(s.Required, name):
				delete(v, name)
			}
		}
	case []any:
		other, _ := nonZero.([]any)
		if s == nil || len(other) != len(v) {
			return
		}
		for i, each := range v {
			removeZeros(s.Items, each, other[i])
		}
	}
}
