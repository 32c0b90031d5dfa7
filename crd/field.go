package crd

import (
	"fmt"
	"reflect"
	"slices"
)

// field returns the schema of f, a field of the struct at outer, and whether it is required.
// The schema is nil after a problem.
func (b *builder) field(f field, outer place) (s *Schema, required bool) {
	name := f.in.name + "." + f.Name
	tagged := func(err error) { b.failf(name, "the tag crd:%q: %v", f.tag, err) }
	directives, err := parseTag(f.tag)
	if err != nil {
		tagged(err)
		return nil, false
	}
	at := place{
		name: name,
		pkg:  f.in.pkg,
		decl: f.in.decl + "." + f.Name,
		path: append(slices.Clone(outer.path), f.name),
		many: outer.many,
		open: outer.open,
	}
	// That a field is nullable decides what a default of null means, wherever it stands.
	directives = nullableFirst(directives)
	for _, d := range directives {
		if d.key == "type" {
			at.types = append(at.types, d)
		}
	}
	if s = b.fieldType(f, at); s == nil {
		return nil, false
	}
	if text := b.comments.ofField(f); text != "" {
		s.Description = text
	}

	required = !f.omitted && !encodesNull(f.Type)
	insist := false
	touched := []*Schema{s}
	var column, wide *directive
	for _, d := range directives {
		switch {
		case len(d.scope) > 0:
			target, err := d.target(s)
			if err == nil && d.key != "type" { // schema has obeyed that
				err = d.apply(target)
			}
			if err != nil {
				tagged(err)
			} else if !slices.Contains(touched, target) {
				touched = append(touched, target)
			}
		case d.key == "required" || d.key == "optional":
			if d.given {
				tagged(fmt.Errorf("%s: it takes no value: write %s", d, d.key))
			}
			required, insist = d.key == "required", d.key == "required"
		case d.key == "column":
			column = &d
		case d.key == "wide":
			wide = &d
		case d.key == "type":
			// schema has obeyed it.
		default:
			if err := d.apply(s); err != nil {
				tagged(err)
			}
		}
	}
	for _, t := range slices.Backward(touched) {
		for _, err := range t.finish() {
			tagged(err)
		}
	}
	if s.Default != nil {
		if insist {
			tagged(fmt.Errorf("required: a field with a default is never missing"))
		}
		required = false
	}
	if column != nil {
		if err := b.column(column, wide, s, at); err != nil {
			tagged(err)
		}
	} else if wide != nil {
		tagged(fmt.Errorf("wide: it belongs to column"))
	}
	return s, required
}

// fieldType returns the schema of f before the other keys of its tag change it: that of the
// Go type, or that of a key type.
func (b *builder) fieldType(f field, at place) *Schema {
	typed := slices.ContainsFunc(at.types, func(d directive) bool { return len(d.scope) == 0 })
	if f.quoted && !typed {
		switch f.Type.Kind() {
		case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
			reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			b.failf(at.name, "the json option string writes the value in quotes, which users do not expect; leave it out, or tag the field crd:\"type=string\" as well")
			return nil
		}
	}
	return b.schema(f.Type, at)
}

// nullableFirst returns directives with the nullable ones in front, and otherwise in their
// order.
func nullableFirst(directives []directive) []directive {
	var first, others []directive
	for _, d := range directives {
		if d.key == "nullable" {
			first = append(first, d)
		} else {
			others = append(others, d)
		}
	}
	return append(first, others...)
}

// target returns the schema that the scope of d leads to from s.
func (d directive) target(s *Schema) (*Schema, error) {
	for _, scope := range d.scope {
		switch {
		case scope == "items" && s.Items != nil:
			s = s.Items
		case scope == "values" && s.AdditionalProperties != nil:
			s = s.AdditionalProperties
		case scope == "items":
			return nil, fmt.Errorf("%s: items. is for lists, and this is of type %s", d, s.kind())
		default:
			return nil, fmt.Errorf("%s: values. is for maps, and this is of type %s", d, s.kind())
		}
	}
	if slices.Contains([]string{"required", "optional", "column", "wide", "default"}, d.key) {
		return nil, fmt.Errorf("%s: %s is for the field itself, not for its elements", d, d.key)
	}
	return s, nil
}
