// Package jsontree reads and compares JSON values, and knows lists with keys and members of objects by the schema of a
// CustomResourceDefinition.
//
// A value is held as any: nil for null, bool, string, [Number], []any, or map[string]any. A member that an object lacks
// is [Missing]. Values are shared between trees, so nobody changes a value in place.
package jsontree

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/internal/jsonscan"
)

// Missing is the value of a member that an object lacks.
type Missing struct{}

// Number is the text of a JSON number. It is never parsed and written again, because 1.50 and a whole number beyond
// 2^53 would change.
type Number string

// Raw is the JSON of a value that nobody looks into.
type Raw string

// Parse returns the value of well-formed JSON.
func Parse(data []byte) any {
	s := jsonscan.New(data)
	return readValue(&s)
}

// ParseObject returns the members of a JSON object. It reports whether data is a well-formed object.
func ParseObject(data []byte) (map[string]any, bool) {
	if !jsonscan.ValidMembers(data, func(_, _ []byte) {}) {
		return nil, false
	}
	object, isObject := Parse(data).(map[string]any)
	return object, isObject
}

// readValue returns the value at s, which is well formed.
func readValue(s *jsonscan.Scanner) any {
	switch s.Next() {
	case '{':
		object := make(map[string]any)
		_ = s.Members(func(name []byte) error { // the value is well formed
			key := string(name)
			object[key] = readValue(s)
			return nil
		})
		return object
	case '[':
		list := []any{}
		for more, err := s.Enter('['); more && err == nil; {
			if more, err = s.NextElement(']'); more && err == nil {
				list = append(list, readValue(s))
			}
		}
		return list
	case '"':
		text, _ := s.Text()
		return string(text)
	}
	switch raw, _ := s.Raw(); string(raw) {
	case "null":
		return nil
	case "true":
		return true
	case "false":
		return false
	default:
		return Number(raw)
	}
}

// Append appends the JSON of a value. The members of objects are sorted by name, so equal values have equal JSON.
func Append(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		if v {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case Number:
		return append(dst, v...)
	case Raw:
		return append(dst, v...)
	case string:
		return AppendText(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, each := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = Append(dst, each)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range SortedNames(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = Append(append(AppendText(dst, name), ':'), v[name])
		}
		return append(dst, '}')
	}
	return dst // a missing value has no JSON
}

// AppendText appends a JSON string.
func AppendText(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text) // the only error is about invalid UTF-8, which it replaces
	return dst
}

// SortedNames returns the names of the members of objects, sorted, each once.
func SortedNames(objects ...map[string]any) []string {
	n := 0
	for _, each := range objects {
		n += len(each)
	}
	names := make([]string, 0, n)
	for _, each := range objects {
		for name := range each {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Member returns a member of an object, or missing.
func Member(object map[string]any, name string) any {
	if v, isThere := object[name]; isThere {
		return v
	}
	return Missing{}
}

// SetMember sets a member of an object, or removes the member if v is missing.
func SetMember(object map[string]any, name string, v any) {
	if v == (Missing{}) {
		delete(object, name)
	} else {
		object[name] = v
	}
}

// Equal reports whether two values are equal. Numbers are equal if their texts are.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, isList := b.([]any)
		return isList && slices.EqualFunc(a, b, Equal)
	case map[string]any:
		b, isObject := b.(map[string]any)
		return isObject && maps.EqualFunc(a, b, Equal)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// ObjectOrMissing returns v if it is an object, and nil if it is missing. It reports whether v is one of the two.
func ObjectOrMissing(v any) (map[string]any, bool) {
	if v == (Missing{}) {
		return nil, true
	}
	object, isObject := v.(map[string]any)
	return object, isObject
}
