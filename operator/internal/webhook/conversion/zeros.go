package conversion

import (
	"bytes"
	"slices"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/jsonscan"
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

// removeZeros removes from v, a new value, the members that are {} or null, that the value at nonZero lacks, and that s does
// not require. It steps over the value at nonZero.
func removeZeros(s *crd.Schema, v any, nonZero *jsonscan.Scanner) error {
	switch v := v.(type) {
	case map[string]any:
		return removeZeroMembers(s, v, nonZero)
	case []any:
		if s == nil {
			break
		}
		more, err := nonZero.Enter('[')
		for i := 0; more && err == nil; i++ {
			if more, err = nonZero.NextElement(']'); more && err == nil {
				var element any
				if i < len(v) {
					element = v[i]
				}
				err = removeZeros(s.Items, element, nonZero)
			}
		}
		return err
	}
	return nonZero.Skip()
}

func removeZeroMembers(s *crd.Schema, object map[string]any, nonZero *jsonscan.Scanner) error {
	var zeros []string
	for name, value := range object {
		inner, isObject := value.(map[string]any)
		if (value == nil || isObject && len(inner) == 0) && (s == nil || !slices.Contains(s.Required, name)) {
			zeros = append(zeros, name)
		}
	}
	err := nonZero.Members(func(name []byte) error {
		if at := slices.Index(zeros, string(name)); at >= 0 {
			zeros = slices.Delete(zeros, at, at+1)
		}
		return removeZeros(propertyOf(s, string(name)), object[string(name)], nonZero)
	})
	for _, name := range zeros {
		delete(object, name)
	}
	return err
}
