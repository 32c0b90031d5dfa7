package crd

import (
	"reflect"
	"slices"
)

// position is where the builder is in the Go types and in the object.
type position struct {
	// goName is the Go name of the field, for errors.
	goName string
	// pkg and decl locate the comments of a struct without a name: see owner.
	pkg, decl string
	// jsonNames holds the JSON names from the root.
	jsonNames []string
	// tagPath is the path with [*] for the elements of lists and maps, as in the Tags of a Definition.
	tagPath string
	// isInElement is true within an element of a list or a map. A path of names does not name a single value there.
	isInElement bool
	// ancestors holds the types around the position.
	ancestors []ancestor
	// scope leads from the field to the position, as in the keys of a tag: items, values.
	scope []string
	// typeKeys holds the keys type=… of the tags, for any scope. The first of a scope counts.
	typeKeys []directive
}

// within returns the position of the elements of a list (items) or the values of a map (values).
func (p position) within(scope string) position {
	p.isInElement = true
	p.tagPath += "[*]"
	p.scope = append(slices.Clone(p.scope), scope)
	return p
}

// typeKey returns the key of a tag that gives the position the type name.
func (p position) typeKey(name string) string {
	return directive{scope: p.scope, key: "type", value: name, hasValue: true}.String()
}

// addTypeKeys adds the keys type=… of t, a tag that stands at p.
func (p *position) addTypeKeys(t tag) {
	if types := t.typeKeys(p.scope); types != nil {
		p.typeKeys = append(slices.Clone(p.typeKeys), types...)
	}
}

// ownTypeKey returns the key type=… that decides on the schema of p itself, or nil if none does.
func (p position) ownTypeKey() *directive {
	for _, d := range p.typeKeys {
		if slices.Equal(d.scope, p.scope) {
			return &d
		}
	}
	return nil
}

// ancestor is a type around a position, and the field that leads to it.
type ancestor struct {
	t         reflect.Type
	fieldName string
}
