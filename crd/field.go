package crd

import (
	"fmt"
	"reflect"
	"slices"
)

// change holds the effects of the tags of a field on the field as a whole.
type change struct {
	required, insist bool
	column, wide     *directive
	selectable       *directive
	// touched holds the schemas that a tag has changed.
	touched []*Schema
}

// field returns the schema of f, a field of the struct at outer, and whether it is required.
// The schema is nil after a problem.
func (b *builder) field(f field, outer position) (s *Schema, required bool) {
	name := f.in.name + "." + f.Name
	at := position{
		name:  name,
		pkg:   f.in.pkg,
		decl:  f.in.decl + "." + f.Name,
		path:  append(slices.Clone(outer.path), f.name),
		where: outer.where + jsonPath([]string{f.name}),
		many:  outer.many,
		open:  outer.open,
	}
	own, ok := b.parse(fmt.Sprintf("%s: the tag crd:%q", name, f.tag), f.tag)
	if !ok {
		return nil, false
	}
	tags := []tag{own}
	if _, ok := b.tags[at.where]; ok {
		byPath, ok := b.pathTag(at)
		if !ok {
			return nil, false
		}
		tags = []tag{byPath, own}
	}
	for _, t := range slices.Backward(tags) {
		at.types = append(at.types, t.types(nil)...)
	}
	if s = b.fieldType(f, at); s == nil {
		return nil, false
	}
	if text := b.sources.ofField(f); text != "" {
		s.Description = text
	}

	if known, ok := b.kubernetesFieldTag(f, s); ok {
		tags = append([]tag{known}, tags...)
	}
	c := change{required: !f.omitted && !encodesNull(f.Type), touched: []*Schema{s}}
	for _, t := range tags {
		b.applyToField(s, t, &c)
	}
	last := own.name
	if f.tag == "" && len(tags) > 1 {
		last = tags[len(tags)-2].name
	}
	for _, each := range slices.Backward(c.touched) {
		for _, err := range checkSchema(each) {
			b.fail(last, err)
		}
	}
	if s.Default != nil {
		if c.insist {
			b.failf(last, "required: a field with a default is never missing")
		}
		c.required = false
	}
	if c.column != nil {
		if err := b.column(c.column, c.wide, s, at); err != nil {
			b.fail(last, err)
		}
	} else if c.wide != nil {
		b.failf(last, "wide: it belongs to column")
	}
	if c.selectable != nil {
		if err := b.selectable(c.selectable, s, at); err != nil {
			b.fail(last, err)
		}
	}
	return s, c.required
}

// applyToField changes s, the schema of a field, and c by t.
func (b *builder) applyToField(s *Schema, t tag, c *change) {
	for _, d := range t.directives {
		switch {
		case len(d.scope) > 0:
			if err := d.applyWithin(s, &c.touched); err != nil {
				b.fail(t.name, err)
			}
		case d.key == "required" || d.key == "optional":
			if d.given {
				b.failf(t.name, "%s: it takes no value: write %s", d, d.key)
			}
			c.required, c.insist = d.key == "required", d.key == "required"
		case d.key == "column":
			c.column = &d
		case d.key == "wide":
			c.wide = &d
		case d.key == "selectable":
			c.selectable = &d
		case d.key == "type":
			// schema has applied it.
		default:
			if err := applyOption(s, d); err != nil {
				b.fail(t.name, err)
			}
		}
	}
}

// fieldType returns the schema of f before the other keys of its tag change it: the schema of
// the Go type, or of a key type.
func (b *builder) fieldType(f field, at position) *Schema {
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
