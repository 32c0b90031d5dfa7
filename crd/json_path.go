package crd

import (
	"strconv"
	"strings"
)

// jsonPath returns the path of names from the root, as kubectl writes it.
func jsonPath(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteByte('.')
		b.WriteString(strings.ReplaceAll(name, ".", `\.`))
	}
	return b.String()
}

// severalValues returns the part of a path that names several values, or "":
//
//	.spec.ports[*].port                           [*]
//	.spec.args[0:2]                               [0:2]
//	..port                                        ..
//	.spec.args[-1:]                               "", the last element
//	.status.conditions[?(@.type=="Ready")].status "", because such a filter is meant for one element
func severalValues(path string) string {
	for i := 0; i < len(path); i++ {
		switch rest := path[i:]; {
		case rest[0] == '\\':
			i++
		case strings.HasPrefix(rest, ".."), strings.HasPrefix(rest, ".*"):
			return rest[:2]
		case rest[0] == '[':
			part := rest[:bracketLength(rest)]
			if content := strings.TrimSpace(strings.Trim(part, "[]")); namesSeveralElements(content) {
				return part
			}
			i += len(part) - 1
		}
	}
	return ""
}

// bracketLength returns the length of the part of a path in brackets with which text begins. Brackets within quotation
// marks do not count, and inner brackets belong to the part.
func bracketLength(text string) int {
	depth, quote := 0, byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// namesSeveralElements reports whether the content of brackets in a path names several elements of a list or a map.
func namesSeveralElements(content string) bool {
	switch {
	case content == "" || content[0] == '?':
		return false
	case content[0] == '\'' || content[0] == '"': // names of members
		return strings.Contains(content, content[:1]+",")
	}
	low, high, isSlice := strings.Cut(content, ":")
	if !isSlice {
		return strings.ContainsAny(content, "*,")
	}
	first, errFirst := strconv.Atoi(low)
	end, errEnd := strconv.Atoi(high)
	switch {
	case errFirst == nil && high == "":
		return first != -1
	case low == "" && errEnd == nil:
		return end != 1
	}
	return errFirst != nil || errEnd != nil || end != first+1
}

// schemaAtPath returns the schema at a path of plain names, or nil if there is none. isPlain is false if
// the path contains more, such as a filter: then the path cannot be checked.
func schemaAtPath(root *Schema, path string) (s *Schema, isPlain bool) {
	if strings.ContainsAny(path, `[]()*?@\"'{}`) || strings.Contains(path, "..") {
		return nil, false
	}
	s = root
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		switch {
		case s.Properties[name] != nil:
			s = s.Properties[name]
		case s.AdditionalProperties != nil:
			s = s.AdditionalProperties
		case s.PreserveUnknownFields, s == root.Properties["metadata"]:
			return nil, false
		default:
			return nil, true
		}
	}
	return s, true
}
