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
