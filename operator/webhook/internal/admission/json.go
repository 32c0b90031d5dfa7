package admission

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/internal/jsonscan"
)

// members are the members of a JSON object.
type members struct {
	names  []string
	values map[string][]byte
}

// membersOf returns the members of an object. If a name occurs twice, the last value counts.
func membersOf(object []byte) members {
	m := members{values: make(map[string][]byte)}
	eachMember(object, func(name string, value []byte) {
		if _, isThere := m.values[name]; !isThere {
			m.names = append(m.names, name)
		}
		m.values[name] = value
	})
	return m
}

// elementsOf returns the elements of a JSON array.
func elementsOf(array []byte) [][]byte {
	var all [][]byte
	s := jsonscan.New(array)
	for more, err := s.Enter('['); more && err == nil; {
		if more, err = s.NextElement(']'); more && err == nil {
			var element []byte
			element, err = s.Raw()
			all = append(all, element)
		}
	}
	return all
}

// appendMember appends a member to the beginning of a JSON object, which is at least an opening brace.
func appendMember(dst []byte, name string, value []byte) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	return append(append(appendText(dst, name), ':'), value...)
}

// appendText appends a JSON string.
func appendText(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text) // the only error is about invalid UTF-8, which it replaces
	return dst
}

// eachMember calls f for the members of a well-formed JSON value, in their order. It calls f for no member of a value
// that is no object.
func eachMember(object []byte, f func(name string, value []byte)) {
	s := jsonscan.New(object)
	_ = s.Members(func(name []byte) error { // the value is well formed
		value, err := s.Raw()
		f(string(name), value)
		return err
	})
}

// memberOf returns the value of a member, or nil if there is none.
func memberOf(object []byte, name string) []byte {
	s := jsonscan.New(object)
	if found, err := s.Find(name); err != nil || !found {
		return nil
	}
	value, _ := s.Raw() // the value is well formed
	return value
}

// textOf returns the string that value is, or an empty string.
func textOf(value []byte) string {
	s := jsonscan.New(value)
	text, _ := s.Text() // nil for another value
	return string(text)
}

// objectOf returns value if it is an object, and else nil.
func objectOf(value []byte) []byte {
	if opensWith(value, '{') {
		return value
	}
	return nil
}

// opensWith reports whether value is an object, which opens with {, or an array, which opens with [.
func opensWith(value []byte, open byte) bool { return len(value) > 0 && value[0] == open }
