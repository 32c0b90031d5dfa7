package crd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// addColumn adds the column that the tag of a field at a position asks for.
func (b *builder) addColumn(d, wide *directive, s *Schema, at position) error {
	if at.isInElement {
		return fmt.Errorf("%s: a column shows one value, and this field is within a list or a map; name a path in the Definition's Columns", d)
	}
	kind := columnType(s)
	if kind == "" {
		return fmt.Errorf("%s: a column needs a scalar, and this field is of type %s", d, s.typeName())
	}
	c := Column{Name: d.value, Type: kind, Description: s.Description, JSONPath: jsonPath(at.jsonNames)}
	if !d.hasValue {
		c.Name = capital(at.jsonNames[len(at.jsonNames)-1])
	}
	if strings.TrimSpace(c.Name) == "" {
		return fmt.Errorf("%s: the name is empty; write column, or column=Name", d)
	}
	if wide != nil {
		if wide.hasValue {
			return errors.New("wide: it takes no value")
		}
		c.Priority = 1
	}
	b.columns = append(b.columns, c)
	return nil
}

// maxSelectableFields is how many fields of a version a server lets field selectors name.
const maxSelectableFields = 8

// addSelectable adds the field at a position to the fields that field selectors can name.
func (b *builder) addSelectable(d *directive, s *Schema, at position) error {
	path := jsonPath(at.jsonNames)
	switch {
	case d.hasValue:
		return errors.New("selectable: it takes no value: write selectable")
	case at.isInElement:
		return errors.New("selectable: a field selector compares one value, and this field is within a list or a map")
	case s.Type != typeString && s.Type != typeInteger && s.Type != typeBoolean:
		return fmt.Errorf("selectable: the field must be a string, an integer or a boolean, and it is of type %s", s.typeName())
	case strings.ContainsAny(path, `\[]'"`):
		return fmt.Errorf("selectable: the path %s has a name that field selectors cannot have", path)
	}
	b.selectables = append(b.selectables, SelectableField{JSONPath: path})
	if len(b.selectables) > maxSelectableFields {
		return fmt.Errorf("selectable: a server accepts at most %d such fields of a version, and this is one more", maxSelectableFields)
	}
	return nil
}

// columnType returns the type of a column that shows an s. It is empty if no column can show an s.
func columnType(s *Schema) string {
	switch s.typeName() {
	case typeString:
		if s.Format == "date-time" {
			return "date"
		}
		return typeString
	case typeIntOrString:
		return typeString
	case typeInteger, typeNumber, typeBoolean:
		return s.typeName()
	}
	return ""
}

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

// allColumns returns the columns of the fields, the columns of the Definition, and the age.
func (b *builder) allColumns(root *Schema, defined []kube.Column) []Column {
	columns := b.columns
	for _, d := range defined {
		name := ident.GoTypeName(b.root) + ": its Definition's column " + fmt.Sprintf("%q", d.Name)
		s, isPlain := schemaAtPath(root, d.JSONPath)
		switch {
		case d.Name == "":
			b.problemf(name, "the name is empty")
		case !strings.HasPrefix(d.JSONPath, "."):
			b.problemf(name, "the path %q must begin with a dot, as in .spec.image", d.JSONPath)
		case isPlain && s == nil:
			b.problemf(name, "the path %s names no field", d.JSONPath)
		}
		kinds := []string{"string", "integer", "number", "boolean", "date"}
		if d.Type == "" {
			d.Type = typeString
			if s != nil && columnType(s) != "" {
				d.Type = columnType(s)
			}
		}
		if !slices.Contains(kinds, d.Type) {
			b.problemf(name, "the type %q must be one of %s", d.Type, strings.Join(kinds, ", "))
		}
		c := Column{Name: d.Name, Type: d.Type, Description: d.Description, JSONPath: d.JSONPath}
		if d.Wide {
			c.Priority = 1
		}
		columns = append(columns, c)
	}
	for i, c := range columns {
		if slices.ContainsFunc(columns[:i], func(o Column) bool { return o.Name == c.Name }) {
			b.problemf(ident.GoTypeName(b.root), "two columns are called %s (%s)", c.Name, c.JSONPath)
		}
	}
	if len(columns) > 0 && !slices.ContainsFunc(columns, func(c Column) bool { return c.Name == "Age" }) {
		// The server shows the age by itself only when there is no other column.
		columns = append(columns, Column{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"})
	}
	return columns
}

// scale returns the scale subresource. Its paths must name fields that a server can read.
func (b *builder) scale(root *Schema, d kube.ScalePaths) *Scale {
	s := &Scale{SpecReplicasPath: d.SpecReplicas, StatusReplicasPath: d.StatusReplicas, LabelSelectorPath: d.Selector}
	if s.SpecReplicasPath == "" {
		s.SpecReplicasPath = ".spec.replicas"
	}
	if s.StatusReplicasPath == "" {
		s.StatusReplicasPath = ".status.replicas"
	}
	check := func(what, path, kind string, under ...string) {
		name := ident.GoTypeName(b.root) + ": its Definition's Scale"
		if !slices.ContainsFunc(under, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			b.problemf(name, "%s %q must begin with %s", what, path, strings.Join(under, " or "))
			return
		}
		switch found, isPlain := schemaAtPath(root, path); {
		case !isPlain:
			b.problemf(name, "%s %q must be a path of field names, as in .spec.replicas", what, path)
		case found == nil:
			b.problemf(name, "%s %s names no field; add one of type %s, or name another path", what, path, kind)
		case found.Type != kind:
			b.problemf(name, "%s %s is of type %s, and must be of type %s", what, path, found.typeName(), kind)
		}
	}
	check("SpecReplicas", s.SpecReplicasPath, typeInteger, ".spec.")
	check("StatusReplicas", s.StatusReplicasPath, typeInteger, ".status.")
	if s.LabelSelectorPath != "" {
		check("Selector", s.LabelSelectorPath, typeString, ".spec.", ".status.")
	}
	return s
}
