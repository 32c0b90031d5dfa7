package crd

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// builder builds the schema of one root type.
type builder struct {
	root        reflect.Type
	hasStatus   bool
	sources     *sources
	problems    *problems
	fields      fieldCollector
	tags        *tagSet
	columns     *columns
	selectables *selectableFields
	modules     otherModules
	losses      lossFinder
}

// newBuilder returns a builder for the type t.
func newBuilder(t kube.Type) *builder {
	p := new(problems)
	p.sources = sourcesOf(t, p.add)
	return &builder{
		root: t.Go, hasStatus: t.HasStatus(), sources: p.sources, problems: p, fields: fieldCollector{p.sources, p},
		tags:    &tagSet{root: t.Go, byPath: t.Definition.Tags, matched: map[string]bool{}, problems: p},
		columns: &columns{root: t.Go, problems: p}, selectables: new(selectableFields),
		modules: newOtherModules(),
		losses:  lossFinder{map[*Schema]*schemaField{}, &problems{sources: p.sources}},
	}
}

// schemaOfObject returns the schema of the whole object.
func (b *builder) schemaOfObject(t kube.Type) *Schema {
	name := ident.GoTypeName(t.Go)
	if encodingOf(t.Go) == encodedUnknown {
		b.problems.addf(name, "the type has a MarshalJSON or UnmarshalJSON of its own, perhaps of a struct that it embeds; the object around spec and status must be plain")
		return &Schema{Type: typeObject}
	}
	root := b.schemaOfStruct(t.Go, position{goName: name})
	b.addTypeRules(t.Go, position{goName: name}, root)
	if own, ok := b.tags.typeTag(t.Go); ok {
		b.tags.applyTo(root, own)
	}
	root.Description = b.sources.commentOfRoot(t.Go)
	if root.Properties["metadata"] == nil {
		b.problems.addf(name,
			"the type has no metadata; embed metav1.TypeMeta `json:\"\"` and metav1.ObjectMeta `json:\"metadata,omitempty\"`")
	}
	b.addRules(name+": its Definition's Rules", root, t.Definition.Rules)
	return root
}

// schemaOfRootField returns the schema of a field that every object has. isFixed is false for other fields.
func (b *builder) schemaOfRootField(f field) (s *Schema, isFixed bool) {
	switch f.name {
	case "apiVersion":
		return &Schema{
			Type: typeString, Description: "The group and version that this object is written in, such as example.com/v1.",
		}, true
	case "kind":
		return &Schema{Type: typeString, Description: "What this object is. It cannot be changed."}, true
	case "metadata":
		if qualified(f.Type) != metaPackage+".ObjectMeta" {
			b.problems.addf(f.owner.name+"."+f.Name, "metadata must be a metav1.ObjectMeta")
		}
		// Servers know its fields, and refuse a schema that describes them.
		return &Schema{Type: typeObject}, true
	}
	return nil, false
}

// schemaOfType returns the schema of a t at a position, or nil after a problem.
func (b *builder) schemaOfType(t reflect.Type, at position) *Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	// the tag of the type and, for elements, the tag by their path; schemaOfField applies the tag of a field
	var layers [2]tag
	if len(at.scope) > 0 {
		layers[1], _ = b.tags.pathTag(at)
		at.addTypeKeys(layers[1])
	}
	typeKey := at.ownTypeKey()
	if typeKey == nil || typeKey.value == typeStruct {
		layers[0], _ = b.tags.typeTag(t)
		at.addTypeKeys(layers[0])
		typeKey = at.ownTypeKey()
	}
	var s *Schema
	if typeKey != nil && typeKey.value != typeStruct {
		s = b.schemaOfDirective(*typeKey, at)
	} else if s = b.schemaWithoutComment(t, at, typeKey != nil); s != nil {
		b.addTypeRules(t, at, s)
		if s.Description == "" {
			s.Description = b.sources.commentOfType(t)
		}
	}
	for _, layer := range layers {
		if s != nil && layer.directives != nil && !b.tags.applyTo(s, layer) {
			return nil
		}
	}
	return s
}

// schemaOfDirective returns the schema that d, a type=… in a tag, stands for.
func (b *builder) schemaOfDirective(d directive, at position) *Schema {
	s, err := schemaOfTypeKey(d.value)
	if err != nil {
		b.problems.addf(at.goName, "the tag crd:%q: %v", d.String(), err)
	}
	return s
}

// schemaWithoutComment returns the schema of a t without its description and the rules of the type. If asStruct is
// true, t is described by its fields, however it encodes itself.
func (b *builder) schemaWithoutComment(t reflect.Type, at position, asStruct bool) *Schema {
	if asStruct {
		if t.Kind() != reflect.Struct {
			b.problems.addf(at.goName, "the tag crd:%q is for structs, and %s is none", at.typeKey(typeStruct), t)
			return nil
		}
		return b.schemaUnlessRecursive(t, at)
	}
	s, isKnown, err := schemaOfWellKnown(t)
	if !isKnown && t.Name() != "" {
		s, isKnown, err = schemaOfSelfDescribed(t)
	}
	switch {
	case err != nil:
		b.problems.addf(at.goName, "%s: %v", t, err)
		return nil
	case isKnown:
		return s
	}
	switch encodingOf(t) {
	case encodedAsText:
		return &Schema{Type: typeString}
	case encodedUnknown:
		b.addUntyped(at, typeString, "%s encodes itself, so its schema cannot be seen; tag the field crd:%q (or what it is in JSON; type=%s if its JSON has its fields), or give the type a method CRDTag() string or OpenAPISchemaType() []string", t, at.typeKey(typeString), typeStruct)
		return nil
	}
	return b.schemaUnlessRecursive(t, at)
}

// schemaUnlessRecursive returns the schema of a t by its kind. For a t that contains itself, it records a problem and
// returns nil.
func (b *builder) schemaUnlessRecursive(t reflect.Type, at position) *Schema {
	for i, outer := range at.ancestors {
		if outer.t == t {
			var trail []string
			for _, inner := range at.ancestors[i+1:] {
				trail = append(trail, inner.fieldName)
			}
			b.addUntyped(at, typeObject, "the type %s contains itself (%s → %s), and a schema cannot; tag %s crd:%q, which takes any fields, or make it a runtime.RawExtension",
				t, strings.Join(append(trail, at.goName), " → "), t, at.goName, at.typeKey(typeObject))
			return nil
		}
	}
	if t.Name() != "" {
		at.ancestors = append(slices.Clone(at.ancestors), ancestor{t, at.goName})
	}
	return b.schemaByKind(t, at)
}

// schemaByKind returns the schema of a type that encoding/json encodes by its kind.
func (b *builder) schemaByKind(t reflect.Type, at position) *Schema {
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
		return b.schemaOfList(t, at)
	case reflect.Map:
		return b.schemaOfMap(t, at)
	case reflect.Struct:
		return b.schemaOfStruct(t, at)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return &Schema{PreserveUnknownFields: true}
		}
		b.problems.addf(at.goName, "the interface %s cannot be decoded; use any, json.RawMessage or runtime.RawExtension", t)
	default:
		b.problems.addf(at.goName, "JSON has nothing for the type %s; tag the field `json:\"-\"` to leave it out", t)
	}
	return nil
}

// schemaOfList returns the schema of a slice or an array.
func (b *builder) schemaOfList(t reflect.Type, at position) *Schema {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		if encodingOf(t.Elem()) == encodedByKind {
			return &Schema{Type: typeString, Format: "byte"}
		}
	}
	items := b.schemaOfType(t.Elem(), at.within("items"))
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

// schemaOfMap returns the schema of a map.
func (b *builder) schemaOfMap(t reflect.Type, at position) *Schema {
	if t.Key().Kind() != reflect.String {
		b.problems.addf(at.goName, "the keys of a map must be strings, and those of %s are %s", t, t.Key())
		return nil
	}
	if encodingOf(t.Key()) != encodedByKind {
		b.problems.addf(at.goName, "the keys of a map must be plain strings, and %s encodes itself", t.Key())
		return nil
	}
	values := b.schemaOfType(t.Elem(), at.within("values"))
	if values == nil {
		return nil
	}
	return &Schema{Type: typeObject, AdditionalProperties: values}
}

// schemaOfStruct returns the schema of a struct, without the rules of its type.
func (b *builder) schemaOfStruct(t reflect.Type, at position) *Schema {
	isRoot := t == b.root && len(at.jsonNames) == 0 && !at.isInElement
	if isRoot {
		at.ancestors = []ancestor{{t, at.goName}}
	}
	s := &Schema{Type: typeObject}
	for _, f := range b.fields.fieldsOf(t, at) {
		var p *Schema
		isFixed := false
		if isRoot {
			if f.name == "status" && !b.hasStatus {
				continue
			}
			p, isFixed = b.schemaOfRootField(f)
		}
		if !isFixed {
			var isRequired bool
			p, isRequired = b.schemaOfField(f, at)
			if isRequired && (!isRoot || f.name != "status") {
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
	own, ok := b.tags.newTag(fmt.Sprintf("%s: the tag crd:%q", name, f.tag), f.tag)
	if !ok {
		return nil, false
	}
	tags := []tag{own}
	if b.tags.hasPath(at.tagPath) {
		byPath, ok := b.tags.pathTag(at)
		if !ok {
			return nil, false
		}
		tags = []tag{byPath, own}
	}
	for _, t := range slices.Backward(tags) {
		at.typeKeys = append(at.typeKeys, t.typeKeys(nil)...)
	}
	earlier := len(b.problems.all)
	s = b.schemaOfFieldType(f, at)
	if !b.modules.isOther(f.owner.pkg) && b.modules.isOther(elementType(f.Type).PkgPath()) {
		b.joinProblemsOfOtherModule(f, at, earlier)
	}
	if s == nil {
		return nil, false
	}
	if text := b.sources.commentOfField(f); text != "" {
		s.Description = text
	}

	if known, ok := b.tags.newTag(name, kubernetesFieldTag(f, s)); ok && len(known.directives) > 0 {
		tags = append([]tag{known}, tags...)
	}
	effects := fieldEffects{isRequired: !f.mayBeOmitted && !encodesNull(f.Type), touched: []*Schema{s}}
	for _, t := range tags {
		effects.apply(s, t, b.problems)
	}
	lastTagName := own.name
	if f.tag == "" && len(tags) > 1 {
		lastTagName = tags[len(tags)-2].name
	}
	for _, each := range slices.Backward(effects.touched) {
		for _, err := range checkSchema(each) {
			b.problems.addLines(lastTagName, err)
		}
	}
	if s.Default != nil {
		if effects.isRequiredByTag {
			b.problems.addf(lastTagName, "required: a field with a default is never missing")
		}
		effects.isRequired = false
	}
	if effects.column != nil {
		if err := b.columns.add(effects.column, effects.wide, s, at); err != nil {
			b.problems.addLines(lastTagName, err)
		}
	} else if effects.wide != nil {
		b.problems.addf(lastTagName, "wide: it belongs to column")
	}
	if effects.selectable != nil {
		if err := b.selectables.add(effects.selectable, s, at); err != nil {
			b.problems.addLines(lastTagName, err)
		}
	}
	b.losses.fields[s] = &schemaField{
		goName: name, isOwn: !b.modules.isOther(f.owner.pkg), acceptingTag: effects.acceptingTag,
	}
	return s, effects.isRequired
}

// untypedError is the problem of a field whose type has no schema. A key type=… solves it.
type untypedError struct {
	error
	// path is the path of the field for the Tags of a Definition, and key is the key.
	path, key string
}

// addUntyped adds the problem that the type at a position has no schema. A key with the type name solves it.
func (b *builder) addUntyped(at position, name, format string, args ...any) {
	earlier := len(b.problems.all)
	b.problems.addf(at.goName, format, args...)
	path := at.tagPath
	for range at.scope {
		path = strings.TrimSuffix(path, "[*]")
	}
	for i, err := range b.problems.all[earlier:] {
		b.problems.all[earlier+i] = untypedError{err, path, at.typeKey(name)}
	}
}

// joinProblemsOfOtherModule replaces the problems from the index earlier on, which are those within the type of f, by
// one problem of f. The author of f cannot change the type, because it belongs to another module. Problems of f itself,
// and of the author's tags by path, stay. Example: url.URL has eleven fields without a JSON name.
func (b *builder) joinProblemsOfOtherModule(f field, at position, earlier int) {
	var own, inner []error
	for _, err := range b.problems.all[earlier:] {
		if text := err.Error(); strings.Contains(text, at.goName+": ") || strings.Contains(text, tagsOfDefinition) {
			own = append(own, err)
		} else {
			inner = append(inner, err)
		}
	}
	if len(inner) == 0 {
		return
	}
	b.problems.all = append(b.problems.all[:earlier], own...)
	reason, _, _ := strings.Cut(inner[0].Error(), ";")
	if more := len(inner) - 1; more > 0 {
		reason += fmt.Sprintf(" (%d more fields of the type have no schema)", more)
	}
	elements := position{scope: scopeOf(f.Type)}
	advice := fmt.Sprintf("tag %s crd:%q, which takes any fields, or %s if its JSON is a string",
		at.goName, elements.typeKey(typeObject), elements.typeKey(typeString))
	if i := slices.IndexFunc(inner, func(err error) bool { return errors.As(err, new(untypedError)) }); i >= 0 {
		var untyped untypedError
		errors.As(inner[i], &untyped)
		advice += fmt.Sprintf("; or give each of its fields a type in the Definition's Tags, as in %q: %q",
			untyped.path, untyped.key)
	}
	b.problems.addf(at.goName, "%s belongs to another module and has no schema: %s; %s",
		elementType(f.Type), reason, advice)
}

// elementType returns the type of the elements of t, a pointer, a list or a map of any depth, or t itself.
func elementType(t reflect.Type) reflect.Type {
	for t.Name() == "" {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		default:
			return t
		}
	}
	return t
}

// scopeOf returns the scope of the elements of t in a tag: items and values for a list of maps.
func scopeOf(t reflect.Type) (scope []string) {
	for t.Name() == "" {
		switch t.Kind() {
		case reflect.Slice, reflect.Array:
			scope = append(scope, "items")
		case reflect.Map:
			scope = append(scope, "values")
		case reflect.Pointer:
		default:
			return scope
		}
		t = t.Elem()
	}
	return scope
}

// otherModules holds the paths of the modules that the program requires. It is empty if the program has no record of
// them.
type otherModules []string

// newOtherModules returns the modules that the program requires, from what the linker records in the program.
func newOtherModules() (m otherModules) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, required := range info.Deps {
		m = append(m, required.Path)
	}
	return m
}

// isOther reports whether a package belongs to a required module or to the standard library. The path of a package of
// the standard library has no dot in its first element. So has the path main, which is the program. The packages of
// Kubernetes count even without a record, which go test does not make.
func (m otherModules) isOther(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return pkg != "" && pkg != "main" && !strings.Contains(first, ".") || first == "k8s.io" ||
		slices.ContainsFunc(m, func(module string) bool { return pkg == module || strings.HasPrefix(pkg, module+"/") })
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
			b.problems.addf(at.goName, "the json option string writes the value in quotes, which users do not expect; leave it out, or tag the field crd:\"type=string\" as well")
			return nil
		}
	}
	return b.schemaOfType(f.Type, at)
}

// addTypeRules adds to s the rules of t: the rules of its method Rules or, if t is a struct without this
// method, the rules of the structs that t embeds.
func (b *builder) addTypeRules(t reflect.Type, at position, s *Schema) {
	defer func() {
		if p := recover(); p != nil {
			b.problems.addf(ownerOf(t, at).name, "its method Rules must work on the zero value: panic: %v", p)
		}
	}()
	if rules := rulesOf(t); rules != nil {
		b.addRules(ownerOf(t, at).name+": its method Rules", s, rules)
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
			b.addTypeRules(elem, at, s)
		}
	}
}

// addRules adds rules to s. It checks what servers demand of them, except that they compile.
func (b *builder) addRules(name string, s *Schema, rules []kube.Rule) {
	for _, r := range rules {
		switch {
		case strings.TrimSpace(r.Rule) == "":
			b.problems.addf(name, "a rule is empty")
		case strings.ContainsAny(r.Message, "\r\n"):
			b.problems.addf(name, "the message of the rule %q must be one line", r.Rule)
		case strings.Contains(r.Rule, "\n") && strings.TrimSpace(r.Message) == "":
			b.problems.addf(name, "the rule %q has several lines, so it needs a message", r.Rule)
		default:
			s.Validations = append(s.Validations, Validation(r))
		}
	}
}
