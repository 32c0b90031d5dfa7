package crd

import (
	"errors"
	"fmt"
	"strings"
)

// maxSelectableFields is how many fields of a version a server lets field selectors name.
const maxSelectableFields = 8

// selectableFields holds the fields of one root type that field selectors can name.
type selectableFields struct{ all []SelectableField }

// add adds the field at a position to the fields that field selectors can name.
func (f *selectableFields) add(d *directive, s *Schema, at position) error {
	path := jsonPath(at.jsonNames)
	switch {
	case d.hasValue:
		return errors.New("selectable: it takes no value: write selectable")
	case at.isInElement:
		return errors.New("selectable: a field selector compares one value, and this field is within a list or a map")
	case s.Type != typeString && s.Type != typeInteger && s.Type != typeBoolean:
		return fmt.Errorf("selectable: the field must be a string, an integer or a boolean, and it is of type %s",
			s.typeName())
	case strings.ContainsAny(path, `\[]'"`):
		return fmt.Errorf("selectable: the path %s has a name that field selectors cannot have", path)
	}
	f.all = append(f.all, SelectableField{JSONPath: path})
	if len(f.all) > maxSelectableFields {
		return fmt.Errorf("selectable: a server accepts at most %d such fields of a version, and this is one more",
			maxSelectableFields)
	}
	return nil
}
