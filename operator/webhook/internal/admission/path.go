package admission

import (
	"strings"

	"github.com/yare-go/yare/crd"
)

// pathProblem returns why a field path, such as spec.ports[0].name or spec.limits[cpu], names no field of a schema. It
// returns an empty text if the path names a field. Everything below metadata is accepted.
func pathProblem(s *crd.Schema, path string) string {
	if path == "" || path == "<nil>" {
		return "it is empty"
	}
	for rest := path; rest != ""; {
		if s == nil || s.PreserveUnknownFields || s.Type == "" {
			return "" // anything may follow
		}
		if rest[0] == '[' {
			end := closingBracket(rest)
			if end < 0 {
				return "a bracket is not closed"
			}
			elements := s.Items
			if s.Type == "object" {
				elements = s.AdditionalProperties
			}
			if elements == nil {
				return path[:len(path)-len(rest)] + " is no list and no map"
			}
			s, rest = elements, strings.TrimPrefix(rest[end+1:], ".")
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		name := rest[:end]
		if path[:end] == "metadata" && len(rest) == len(path) {
			return ""
		}
		p := s.Properties[name]
		if p == nil && len(s.Properties) == 0 {
			p = s.AdditionalProperties
		}
		if p == nil && s.AdditionalProperties == nil {
			return "the type has no field " + path[:len(path)-len(rest)+end]
		}
		s, rest = p, strings.TrimPrefix(rest[end:], ".")
	}
	return ""
}

// closingBracket returns the index of the bracket that closes the key at the beginning of text, or -1. A key can have
// brackets, so the closing one is the first before a dot, another key or the end. For example, it is the last one in
// [a]b].
func closingBracket(text string) int {
	for i := range text {
		if text[i] == ']' && (i+1 == len(text) || text[i+1] == '.' || text[i+1] == '[') {
			return i
		}
	}
	return -1
}
