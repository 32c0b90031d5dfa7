package crd

import "strings"

// jsonPath returns the path of names from the root, as kubectl writes it.
func jsonPath(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteByte('.')
		b.WriteString(strings.ReplaceAll(name, ".", `\.`))
	}
	return b.String()
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
