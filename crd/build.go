package crd

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// builder builds the schema of one root type, and collects its problems.
type builder struct {
	root        reflect.Type
	hasStatus   bool
	sources     *sources
	columns     []Column
	selectables []SelectableField
	problems    []error
	// tags holds the tags of the Definition by path. matched holds those paths that match a position.
	tags    map[string]string
	matched map[string]bool
}

// position is where the builder is in the Go types and in the object.
type position struct {
	// name is the Go name of the field, for errors.
	name string
	// pkg and decl locate the comments of a struct without a name: see owner.
	pkg, decl string
	// path holds the JSON names from the root.
	path []string
	// where is the path with [*] for the elements of lists and maps, as in the Tags of a Definition.
	where string
	// many is true within a list or a map, where a path does not name a single value.
	many bool
	// open holds the types that are being described around the position.
	open []step
	// scope leads from the field to the position, as in the keys of a tag: items, values.
	scope []string
	// types holds the keys type=… of the tags, for any scope. The first of a scope counts.
	types []directive
}

// within returns the position of the elements of a list (items) or the values of a map (values).
func (p position) within(scope string) position {
	p.many = true
	p.where += "[*]"
	p.scope = append(slices.Clone(p.scope), scope)
	return p
}

// typeKey returns the key of a tag that gives the position the type name.
func (p position) typeKey(name string) string {
	return directive{scope: p.scope, key: "type", value: name, given: true}.String()
}

// step is a type that is being described, and the field leading to the type.
type step struct {
	t   reflect.Type
	via string
}

// failf records a problem of the type or field called name, with the file and the line that
// declare it if the Source of the Definition has them.
func (b *builder) failf(name, format string, args ...any) {
	if at := b.sources.position(name); at != "" {
		name = at + ": " + name
	}
	b.problem(fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
}

// fail records each line of err as a problem of the type or field called name.
func (b *builder) fail(name string, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		b.failf(name, "%s", line)
	}
}

// problem records err once: a type that is used twice has the same problem twice.
func (b *builder) problem(err error) {
	if !slices.ContainsFunc(b.problems, func(o error) bool { return o.Error() == err.Error() }) {
		b.problems = append(b.problems, err)
	}
}

// object returns the schema of the whole object.
func (b *builder) object(t kube.Type) *Schema {
	name := ident.GoTypeName(t.Go)
	if _, unknown := custom(t.Go); unknown {
		b.failf(name, "the type has a MarshalJSON or UnmarshalJSON of its own, perhaps of a struct that it embeds; the object around spec and status must be plain")
		return &Schema{Type: typeObject}
	}
	root := b.structure(t.Go, position{name: name})
	b.typeRules(t.Go, position{name: name}, root)
	if own, ok := b.typeTag(t.Go); ok {
		b.applyTo(root, own)
	}
	root.Description = b.sources.ofRoot(t.Go)
	if root.Properties["metadata"] == nil {
		b.failf(name, "the type has no metadata; embed metav1.TypeMeta `json:\"\"` and metav1.ObjectMeta `json:\"metadata,omitempty\"`")
	}
	b.rules(name+": its Definition's Rules", root, t.Definition.Rules)
	return root
}

// inRoot returns the schema of a field that every object has. fixed is false for other fields.
func (b *builder) inRoot(f field) (s *Schema, fixed bool) {
	switch f.name {
	case "apiVersion":
		return &Schema{Type: typeString, Description: "The group and version that this object is written in, such as example.com/v1."}, true
	case "kind":
		return &Schema{Type: typeString, Description: "What this object is. It cannot be changed."}, true
	case "metadata":
		if qualified(f.Type) != metaPackage+".ObjectMeta" {
			b.failf(f.in.name+"."+f.Name, "metadata must be a metav1.ObjectMeta")
		}
		// Servers know its fields, and refuse a schema that describes them.
		return &Schema{Type: typeObject}, true
	}
	return nil, false
}

// schema returns the schema of a t at a position, or nil after a problem.
func (b *builder) schema(t reflect.Type, at position) *Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var layers [2]tag // the tag of the type and, for elements, the tag by their path; field applies the tags of a field
	if len(at.scope) > 0 {
		layers[1], _ = b.pathTag(at)
		at.addTypes(layers[1])
	}
	typed := at.ownType()
	if typed == nil || typed.value == typeStruct {
		layers[0], _ = b.typeTag(t)
		at.addTypes(layers[0])
		typed = at.ownType()
	}
	var s *Schema
	if typed != nil && typed.value != typeStruct {
		s = b.typeOfTag(*typed, at)
	} else if s = b.bare(t, at, typed != nil); s != nil {
		b.typeRules(t, at, s)
		if s.Description == "" {
			s.Description = b.sources.ofType(t)
		}
	}
	for _, layer := range layers {
		if s != nil && layer.directives != nil && !b.applyTo(s, layer) {
			return nil
		}
	}
	return s
}

// addTypes adds the keys type=… of t, a tag that stands at p.
func (p *position) addTypes(t tag) {
	if types := t.types(p.scope); types != nil {
		p.types = append(slices.Clone(p.types), types...)
	}
}

// ownType returns the key type=… that decides on the schema of p itself, or nil if none does.
func (p position) ownType() *directive {
	for _, d := range p.types {
		if slices.Equal(d.scope, p.scope) {
			return &d
		}
	}
	return nil
}

// typeOfTag returns the schema that d, a type=… in a tag, stands for.
func (b *builder) typeOfTag(d directive, at position) *Schema {
	s, err := ofType(d.value)
	if err != nil {
		b.failf(at.name, "the tag crd:%q: %v", d.String(), err)
	}
	return s
}

// bare returns the schema of a t without its description and the rules of the type. If asStruct is
// true, t is described by its fields, however it encodes itself.
func (b *builder) bare(t reflect.Type, at position, asStruct bool) *Schema {
	if asStruct {
		if t.Kind() != reflect.Struct {
			b.failf(at.name, "the tag crd:%q is for structs, and %s is none", at.typeKey(typeStruct), t)
			return nil
		}
		return b.described(t, at)
	}
	s, known, err := wellKnown(t)
	if !known && t.Name() != "" {
		s, known, err = selfDescribed(t)
	}
	switch {
	case err != nil:
		b.failf(at.name, "%s: %v", t, err)
		return nil
	case known:
		return s
	}
	if text, unknown := custom(t); text {
		return &Schema{Type: typeString}
	} else if unknown {
		b.failf(at.name, "%s encodes itself, so its schema cannot be seen; tag the field crd:%q (or what it is in JSON; type=%s if its JSON has its fields), or give the type a method CRDTag() string or OpenAPISchemaType() []string", t, at.typeKey(typeString), typeStruct)
		return nil
	}
	return b.described(t, at)
}

// described returns the schema of a t by its kind. A t that contains itself has none.
func (b *builder) described(t reflect.Type, at position) *Schema {
	for i, open := range at.open {
		if open.t == t {
			var trail []string
			for _, step := range at.open[i+1:] {
				trail = append(trail, step.via)
			}
			b.failf(at.name, "the type %s contains itself (%s → %s), and a schema cannot; tag %s crd:%q, which takes any fields, or make it a runtime.RawExtension",
				t, strings.Join(append(trail, at.name), " → "), t, at.name, at.typeKey(typeObject))
			return nil
		}
	}
	if t.Name() != "" {
		at.open = append(slices.Clone(at.open), step{t, at.name})
	}
	return b.plain(t, at)
}

// plain returns the schema of a type that encoding/json encodes by its kind.
func (b *builder) plain(t reflect.Type, at position) *Schema {
	integer := func(format string, low, top float64) *Schema {
		return &Schema{Type: typeInteger, Format: format, Minimum: &low, Maximum: &top}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: typeBoolean}
	case reflect.String:
		return &Schema{Type: typeString}
	case reflect.Int, reflect.Int64:
		return &Schema{Type: typeInteger, Format: "int64"}
	case reflect.Int32:
		return &Schema{Type: typeInteger, Format: "int32"}
	case reflect.Int8:
		return integer("int32", math.MinInt8, math.MaxInt8)
	case reflect.Int16:
		return integer("int32", math.MinInt16, math.MaxInt16)
	case reflect.Uint8:
		return integer("int32", 0, math.MaxUint8)
	case reflect.Uint16:
		return integer("int32", 0, math.MaxUint16)
	case reflect.Uint32:
		return integer("int64", 0, math.MaxUint32)
	case reflect.Uint, reflect.Uint64:
		return &Schema{Type: typeInteger, Format: "int64", Minimum: new(float64)}
	case reflect.Float32:
		return &Schema{Type: typeNumber, Format: "float"}
	case reflect.Float64:
		return &Schema{Type: typeNumber, Format: "double"}
	case reflect.Slice, reflect.Array:
		return b.list(t, at)
	case reflect.Map:
		return b.mapping(t, at)
	case reflect.Struct:
		return b.structure(t, at)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return &Schema{PreserveUnknownFields: true}
		}
		b.failf(at.name, "the interface %s cannot be decoded; use any, json.RawMessage or runtime.RawExtension", t)
	default:
		b.failf(at.name, "JSON has nothing for the type %s; tag the field `json:\"-\"` to leave it out", t)
	}
	return nil
}

// list returns the schema of a slice or an array.
func (b *builder) list(t reflect.Type, at position) *Schema {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		if text, unknown := custom(t.Elem()); !text && !unknown {
			return &Schema{Type: typeString, Format: "byte"}
		}
	}
	items := b.schema(t.Elem(), at.within("items"))
	if items == nil {
		return nil
	}
	s := &Schema{Type: typeArray, Items: items}
	if isCondition(t.Elem()) {
		s.ListType, s.ListMapKeys = "map", []string{"type"}
	}
	if t.Kind() == reflect.Array {
		n := int64(t.Len())
		s.MinItems, s.MaxItems = &n, &n
	}
	return s
}

// mapping returns the schema of a map.
func (b *builder) mapping(t reflect.Type, at position) *Schema {
	if t.Key().Kind() != reflect.String {
		b.failf(at.name, "the keys of a map must be strings, and those of %s are %s", t, t.Key())
		return nil
	}
	if text, unknown := custom(t.Key()); text || unknown {
		b.failf(at.name, "the keys of a map must be plain strings, and %s encodes itself", t.Key())
		return nil
	}
	values := b.schema(t.Elem(), at.within("values"))
	if values == nil {
		return nil
	}
	return &Schema{Type: typeObject, AdditionalProperties: values}
}

// structure returns the schema of a struct, without the rules of its type.
func (b *builder) structure(t reflect.Type, at position) *Schema {
	isRoot := t == b.root && len(at.path) == 0 && !at.many
	if isRoot {
		at.open = []step{{t, at.name}}
	}
	s := &Schema{Type: typeObject}
	for _, f := range b.fields(t, at) {
		var p *Schema
		fixed := false
		if isRoot {
			if f.name == "status" && !b.hasStatus {
				continue
			}
			p, fixed = b.inRoot(f)
		}
		if !fixed {
			var required bool
			p, required = b.field(f, at)
			if required && (!isRoot || f.name != "status") {
				s.Required = append(s.Required, f.name)
			}
		}
		if p != nil {
			if s.Properties == nil {
				s.Properties = map[string]*Schema{}
			}
			s.Properties[f.name] = p
		}
	}
	slices.Sort(s.Required)
	refine(t, s)
	return s
}

// typeRules adds to s the rules of t: the rules of its method Rules or, if t is a struct without this
// method, the rules of the structs that t embeds.
func (b *builder) typeRules(t reflect.Type, at position, s *Schema) {
	defer func() {
		if p := recover(); p != nil {
			b.failf(ownerOf(t, at).name, "its method Rules must work on the zero value: panic: %v", p)
		}
	}()
	if rules := rulesOf(t); rules != nil {
		b.rules(ownerOf(t, at).name+": its method Rules", s, rules)
		return
	}
	if t.Kind() != reflect.Struct || s.Properties == nil {
		return
	}
	for f := range t.Fields() {
		elem := f.Type
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && elem.Kind() == reflect.Struct {
			b.typeRules(elem, at, s)
		}
	}
}

// rules adds rules to s. It checks what servers demand of them, except that they compile.
func (b *builder) rules(name string, s *Schema, rules []kube.Rule) {
	for _, r := range rules {
		switch {
		case strings.TrimSpace(r.Rule) == "":
			b.failf(name, "a rule is empty")
		case strings.ContainsAny(r.Message, "\r\n"):
			b.failf(name, "the message of the rule %q must be one line", r.Rule)
		case strings.Contains(r.Rule, "\n") && strings.TrimSpace(r.Message) == "":
			b.failf(name, "the rule %q has several lines, so it needs a message", r.Rule)
		default:
			s.Validations = append(s.Validations, Validation(r))
		}
	}
}
