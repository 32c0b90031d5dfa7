package crd

// fieldEffects holds the effects of the tags of a field on the field as a whole.
type fieldEffects struct {
	isRequired, isRequiredByTag bool
	column, wide                *directive
	selectable                  *directive
	// touched holds the schemas that a tag has changed.
	touched []*Schema
}

// apply changes s, the schema of the field, and e by t.
func (e *fieldEffects) apply(s *Schema, t tag, p *problems) {
	for _, d := range t.directives {
		switch {
		case len(d.scope) > 0:
			if err := d.applyWithin(s, &e.touched); err != nil {
				p.addLines(t.name, err)
			}
		case d.key == "required" || d.key == "optional":
			if d.hasValue {
				p.addf(t.name, "%s: it takes no value: write %s", d, d.key)
			}
			e.isRequired, e.isRequiredByTag = d.key == "required", d.key == "required"
		case d.key == "column":
			e.column = &d
		case d.key == "wide":
			e.wide = &d
		case d.key == "selectable":
			e.selectable = &d
		case d.key == "type":
			// schemaOfType has applied it
		default:
			if err := applyTagKey(s, d); err != nil {
				p.addLines(t.name, err)
			}
		}
	}
}
