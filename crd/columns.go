package crd

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// columns has the printer columns of one root type.
type columns struct {
	root     reflect.Type
	problems *problems
	// ofFields holds the columns that tags of fields ask for.
	ofFields []Column
}

// add adds the column that the tag of a field at a position asks for.
func (l *columns) add(d, wide *directive, s *Schema, at position) error {
	if at.isInElement {
		return fmt.Errorf("%s: a column shows one value, and this field is within a list or a map; "+
			"name the path of one element in the Definition's Columns, as in .spec.ports[0].port or "+
			`.status.conditions[?(@.type=="Ready")].status, or the path of a list of scalars`, d)
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
	l.ofFields = append(l.ofFields, c)
	return nil
}

// all returns the columns of the fields, the columns of the Definition, and the age.
func (l *columns) all(root *Schema, defined []kube.Column) []Column {
	shown := l.ofFields
	for _, d := range defined {
		name := ident.GoTypeName(l.root) + ": its Definition's column " + fmt.Sprintf("%q", d.Name)
		s, isPlain := schemaAtPath(root, d.JSONPath)
		switch {
		case d.Name == "":
			l.problems.addf(name, "the name is empty")
		case !strings.HasPrefix(d.JSONPath, "."):
			l.problems.addf(name, "the path %q must begin with a dot, as in .spec.image", d.JSONPath)
		case isPlain && s == nil:
			l.problems.addf(name, "the path %s names no field", d.JSONPath)
		case severalValues(d.JSONPath) != "":
			l.problems.addf(name, "the path %s names several values by %s, and a server shows the first of them alone; "+
				`name one element, as in [0] or [?(@.name=="web")], or the list itself, which is shown as JSON`,
				d.JSONPath, severalValues(d.JSONPath))
		}
		kinds := []string{"string", "integer", "number", "boolean", "date"}
		if d.Type == "" {
			d.Type = typeString
			if s != nil && columnType(s) != "" {
				d.Type = columnType(s)
			}
		}
		if !slices.Contains(kinds, d.Type) {
			l.problems.addf(name, "the type %q must be one of %s", d.Type, strings.Join(kinds, ", "))
		}
		c := Column{Name: d.Name, Type: d.Type, Description: d.Description, JSONPath: d.JSONPath}
		if d.Wide {
			c.Priority = 1
		}
		shown = append(shown, c)
	}
	for i, c := range shown {
		if slices.ContainsFunc(shown[:i], func(o Column) bool { return o.Name == c.Name }) {
			l.problems.addf(ident.GoTypeName(l.root), "two columns are called %s (%s)", c.Name, c.JSONPath)
		}
	}
	if len(shown) > 0 && !slices.ContainsFunc(shown, func(c Column) bool { return c.Name == "Age" }) {
		// The server shows the age by itself only when there is no other column.
		shown = append(shown, Column{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"})
	}
	return shown
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
