package conversion

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/yare-go/yare/crd"
)

// The encoder writes {} and null for zero fields of a Go type that stand in no object that a user has written, such as
// resources of a container. Nearly each object would need an annotation because of them. So they are left out where the
// schema does not require the field.
//
// For example, a container with a volume is encoded as {"name":"a","resources":{},"emptyDir":{}}. Without the zero fields
// of the Go type it is {"name":"a","emptyDir":{}}: the pointer emptyDir is set. The result is the second one.

// encodeWithoutZeros returns the JSON of an object without all zero fields.
func encodeWithoutZeros(object any) ([]byte, error) {
	return json.Marshal(object, jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), json.OmitZeroStructFields(true))
}

// hasEmptyMember reports whether a text can have a member with the value {} or null. It can be wrong about a text in a
// string.
func hasEmptyMember(text []byte) bool {
	return bytes.Contains(text, []byte(":{}")) || bytes.Contains(text, []byte(":null"))
}

// removeZeros removes from v, a new value, the members that hold nothing, that nonZero lacks, and that s does not require.
//
// For example, a template of which nothing is set is encoded as {"spec":{"containers":null}}, and the schema requires
// containers. No API server accepts this spec, so spec is removed as a whole.
func removeZeros(s *crd.Schema, v, nonZero any) {
	switch v := v.(type) {
	case map[string]any:
		other, _ := nonZero.(map[string]any)
		for name, value := range v {
			_, isThere := other[name]
			if !isThere && isHollow(value) && (s == nil || !slices.Contains(s.Required, name)) {
				delete(v, name)
				continue
			}
			removeZeros(propertyOf(s, name), value, other[name])
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

// isHollow reports whether v is null, or an object whose members are hollow.
func isHollow(v any) bool {
	object, isObject := v.(map[string]any)
	if !isObject {
		return v == nil
	}
	for _, each := range object {
		if !isHollow(each) {
			return false
		}
	}
	return true
}
