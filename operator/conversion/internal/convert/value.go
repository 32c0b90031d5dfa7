package convert

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/internal/jsonscan"
)

// A JSON value is held as any: nil for null, bool, string, number, []any, or map[string]any. A member that an object
// lacks is missing{}. Values are shared between trees, so nobody changes a value in place.

// missing is the value of a member that an object lacks.
type missing struct{}

// number is the text of a JSON number. It is never parsed and written again, because 1.50 and a whole number beyond
// 2^53 would change.
type number string

// raw is the JSON of a value that nobody looks into.
type raw string

// parseValue returns the value of well-formed JSON.
func parseValue(data []byte) any {
	s := jsonscan.New(data)
	return readValue(&s)
}

// parseJSONObject returns the members of a JSON object. It reports whether data is a well-formed object.
func parseJSONObject(data []byte) (map[string]any, bool) {
	if !jsonscan.ValidMembers(data, func(_, _ []byte) {}) {
		return nil, false
	}
	object, isObject := parseValue(data).(map[string]any)
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
		return number(raw)
	}
}

// appendValue appends the JSON of a value. The members of objects are sorted by name, so equal values have equal JSON.
func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		if v {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case number:
		return append(dst, v...)
	case raw:
		return append(dst, v...)
	case string:
		return appendText(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, each := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, each)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range sortedNames(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(append(appendText(dst, name), ':'), v[name])
		}
		return append(dst, '}')
	}
	return dst // a missing value has no JSON
}

// appendText appends a JSON string.
func appendText(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text) // the only error is about invalid UTF-8, which it replaces
	return dst
}

// sortedNames returns the names of the members of objects, sorted, each once.
func sortedNames(objects ...map[string]any) []string {
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

// memberOf returns a member of an object, or missing.
func memberOf(object map[string]any, name string) any {
	if v, isThere := object[name]; isThere {
		return v
	}
	return missing{}
}

// setMember sets a member of an object, or removes the member if v is missing.
func setMember(object map[string]any, name string, v any) {
	if v == (missing{}) {
		delete(object, name)
	} else {
		object[name] = v
	}
}

// areEqual reports whether two values are equal. Numbers are equal if their texts are.
func areEqual(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, isList := b.([]any)
		return isList && slices.EqualFunc(a, b, areEqual)
	case map[string]any:
		b, isObject := b.(map[string]any)
		return isObject && maps.EqualFunc(a, b, areEqual)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// objectOrMissing returns v if it is an object, and nil if it is missing. It reports whether v is one of the two.
func objectOrMissing(v any) (map[string]any, bool) {
	if v == (missing{}) {
		return nil, true
	}
	object, isObject := v.(map[string]any)
	return object, isObject
}
