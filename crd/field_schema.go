package crd

import (
	"fmt"
	"reflect"
	"slices"
)

// fieldEffects holds the effects of the tags of a field on the field as a whole.
type fieldEffects struct {
	isRequired, isRequiredByTag bool
	column, wide                *directive
	selectable                  *directive
	// touched holds the schemas that a tag has changed.
	touched []*Schema
}

// schemaOfField returns the schema of f, a field of the struct at outer, and whether the field is required.
// The schema is nil after a problem.
func (b *builder) schemaOfField(f field, outer position) (s *Schema, isRequired bool) {
	name := f.owner.name + "." + f.Name
	at := position{
		goName:      name,
		pkg:         f.owner.pkg,
		decl:        f.owner.decl + "." + f.Name,
		jsonNames:   append(slices.Clone(outer.jsonNames), f.name),
		tagPath:     outer.tagPath + jsonPath([]string{f.name}),
		isInElement: outer.isInElement,
		ancestors:   outer.ancestors,
	}
	own, ok := b.newTag(fmt.Sprintf("%s: the tag crd:%q", name, f.tag), f.tag)
	if !ok {
		return nil, false
	}
	tags := []tag{own}
	if _, ok := b.tags[at.tagPath]; ok {
		byPath, ok := b.pathTag(at)
		if !ok {
			return nil, false
		}
		tags = []tag{byPath, own}
	}
	for _, t := range slices.Backward(tags) {
		at.typeKeys = append(at.typeKeys, t.typeKeys(nil)...)
	}
	if s = b.schemaOfFieldType(f, at); s == nil {
		return nil, false
	}
	if text := b.sources.commentOfField(f); text != "" {
		s.Description = text
	}

	if known, ok := b.kubernetesFieldTag(f, s); ok {
		tags = append([]tag{known}, tags...)
	}
	effects := fieldEffects{isRequired: !f.mayBeOmitted && !encodesNull(f.Type), touched: []*Schema{s}}
	for _, t := range tags {
		b.applyToField(s, t, &effects)
	}
	lastTagName := own.name
	if f.tag == "" && len(tags) > 1 {
		lastTagName = tags[len(tags)-2].name
	}
	for _, each := range slices.Backward(effects.touched) {
		for _, err := range checkSchema(each) {
			b.problemLines(lastTagName, err)
		}
	}
	if s.Default != nil {
		if effects.isRequiredByTag {
			b.problemf(lastTagName, "required: a field with a default is never missing")
		}
		effects.isRequired = false
	}
	if effects.column != nil {
		if err := b.addColumn(effects.column, effects.wide, s, at); err != nil {
			b.problemLines(lastTagName, err)
		}
	} else if effects.wide != nil {
		b.problemf(lastTagName, "wide: it belongs to column")
	}
	if effects.selectable != nil {
		if err := b.addSelectable(effects.selectable, s, at); err != nil {
			b.problemLines(lastTagName, err)
		}
	}
	return s, effects.isRequired
}

// applyToField changes s, the schema of a field, and effects by t.
func (b *builder) applyToField(s *Schema, t tag, effects *fieldEffects) {
	for _, d := range t.directives {
		switch {
		case len(d.scope) > 0:
			if err := d.applyWithin(s, &effects.touched); err != nil {
				b.problemLines(t.name, err)
			}
		case d.key == "required" || d.key == "optional":
			if d.hasValue {
				b.problemf(t.name, "%s: it takes no value: write %s", d, d.key)
			}
			effects.isRequired, effects.isRequiredByTag = d.key == "required", d.key == "required"
		case d.key == "column":
			effects.column = &d
		case d.key == "wide":
			effects.wide = &d
		case d.key == "selectable":
			effects.selectable = &d
		case d.key == "type":
			// schemaOfType has applied it
		default:
			if err := applyTagKey(s, d); err != nil {
				b.problemLines(t.name, err)
			}
		}
	}
}

// schemaOfFieldType returns the schema of f before the other keys of its tag change it: the schema of
// the Go type, or of a key type.
func (b *builder) schemaOfFieldType(f field, at position) *Schema {
	hasTypeKey := slices.ContainsFunc(at.typeKeys, func(d directive) bool { return len(d.scope) == 0 })
	if f.isQuoted && !hasTypeKey {
		switch f.Type.Kind() {
		case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
			reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			b.problemf(at.goName, "the json option string writes the value in quotes, which users do not expect; leave it out, or tag the field crd:\"type=string\" as well")
			return nil
		}
	}
	return b.schemaOfType(f.Type, at)
}
