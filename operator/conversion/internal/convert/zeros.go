package convert

import (
	"bytes"
	"maps"
	"slices"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// The encoder writes {} and null for zero fields of a Go type that stand in no object that a user has written, such as
// resources of a container. Nearly each object would need an annotation because of them. So they are left out where the
// schema does not require the field. They stay where the input has the same empty value at the same path: a Go program
// that has written the input writes all zero fields, and most functions copy a field to the same path.
//
// For example, a container with a volume is encoded as {"name":"a","resources":{},"emptyDir":{}}. Without the zero
// fields of the Go type it is {"name":"a","emptyDir":{}}: the pointer emptyDir is set. The result is the second one,
// unless the container in the input has "resources":{}.

// hasEmptyMember reports whether a text can have a member with the value {} or null. It can be wrong about a text in a
// string.
func hasEmptyMember(text []byte) bool {
	return bytes.Contains(text, []byte(":{}")) || bytes.Contains(text, []byte(":null"))
}

// removeZeros removes from v, a new value, the members that hold nothing, that the value at nonZero lacks, that s does
// not require, and that input does not have. It steps over the value at nonZero.
func removeZeros(s *crd.Schema, v, input any, nonZero *jsonscan.Scanner) error {
	switch v := v.(type) {
	case map[string]any:
		members, _ := input.(map[string]any)
		return removeZeroMembers(s, v, members, nonZero)
	case []any:
		if s == nil {
			break
		}
		inputs, _ := input.([]any)
		more, err := nonZero.Enter('[')
		for i := 0; more && err == nil; i++ {
			if more, err = nonZero.NextElement(']'); more && err == nil {
				var element, from any
				if i < len(v) {
					element = v[i]
				}
				if i < len(inputs) {
					from = inputs[i]
				}
				err = removeZeros(s.Items, element, from, nonZero)
			}
		}
		return err
	}
	return nonZero.Skip()
}

func removeZeroMembers(s *crd.Schema, object, input map[string]any, nonZero *jsonscan.Scanner) error {
	var hollow []string
	for name, value := range object {
		if isHollow(value) {
			hollow = append(hollow, name)
		}
	}
	err := nonZero.Members(func(name []byte) error {
		if at := slices.Index(hollow, string(name)); at >= 0 {
			hollow = slices.Delete(hollow, at, at+1)
		}
		return removeZeros(jsontree.Property(s, string(name)), object[string(name)], input[string(name)], nonZero)
	})
	for _, name := range hollow {
		removeHollow(s, object, input, name)
	}
	return err
}

// removeHollow removes the hollow member of a name from object, unless s requires it or input has it too. Then it
// removes hollow members of the member.
//
// For example, a template of which nothing is set is encoded as {"spec":{"containers":null}}, and the schema requires
// containers. No API server accepts this spec, so spec is removed as a whole.
func removeHollow(s *crd.Schema, object, input map[string]any, name string) {
	value := object[name]
	members, isObject := value.(map[string]any)
	from, isInInput := input[name]
	fromMembers, isFromObject := from.(map[string]any)
	isRequired := s != nil && slices.Contains(s.Required, name)
	isInInput = isInInput && isObject == isFromObject && (isObject || from == nil)
	if !isRequired && !isInInput {
		delete(object, name)
		return
	}
	for _, inner := range slices.Collect(maps.Keys(members)) {
		removeHollow(jsontree.Property(s, name), members, fromMembers, inner)
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
