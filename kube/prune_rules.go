package kube

import (
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// pruneRules describe how to prune the JSON of one Go type. For
//
//	struct {
//		Name string      `json:"name"`
//		Port IntOrString `json:"port"`
//		Spec *struct{...} `json:"spec"`
//	}
//
// there are three members. The members "name" and "spec" stay if their JSON is not null. The member "port" has
// dropZero.
type pruneRules struct {
	// members is set for structs: how to prune each member, by its JSON name.
	members map[string]member
	// hidden holds the names of the members that the encoder may leave out although they are set, because of a method
	// IsZero: the 0 of a Quantity with omitzero is one. There are at most 64.
	hidden []string
	// elem is set for slices, arrays and maps.
	elem *pruneRules
	// changesByEncoding is true for a struct that a method of its pointer encodes, and for a struct with such a field. The
	// method can change the struct: those of protocol buffers fill in a field that is not exported.
	changesByEncoding bool
	// isInterface is true for an interface. The value in it has rules of its own.
	isInterface bool
}

// hiddenSet is a set of hidden members of a struct. The bit i stands for hidden[i].
type hiddenSet uint64

// hiddenMember returns the set of the hidden member of that name. It is empty for other members.
func (r *pruneRules) hiddenMember(name string) hiddenSet {
	if i := slices.Index(r.hidden, name); i >= 0 {
		return 1 << i
	}
	return 0
}

// isVerbatim reports whether the JSON of the type stays as it is.
func (r *pruneRules) isVerbatim() bool {
	return r == nil || r.members == nil && r.elem == nil && !r.isInterface
}

// member describes how to prune one member of a struct.
type member struct {
	rules *pruneRules
	// index is the path to the field, as reflect has it.
	index []int
	// dropZero is true for a struct that is not behind a pointer, unless the schema of an own kind requires the member.
	// The zero value of the Go type was not set, and is left out.
	dropZero bool
	// dropEmpty is true for the status of an object: it is left out if its JSON is {}.
	dropEmpty bool
}

// fieldOf returns the Go value of the member in a struct, or the invalid Value if it is not known.
func (m member) fieldOf(in reflect.Value) reflect.Value {
	if in.Kind() != reflect.Struct || len(m.index) == 0 {
		return reflect.Value{}
	}
	v, err := in.FieldByIndexErr(m.index)
	if err != nil { // inside of an embedded pointer that is nil
		return reflect.Value{}
	}
	return v
}

// pruneKey is a Go type and the context of its use. The same type can have rules of its own in each context.
type pruneKey struct {
	t reflect.Type
	// isOwn is true where the schema of an own kind describes the values.
	isOwn bool
	// tags are the crd tags by path, and path is the path of the values. tags is nil if no path leads further.
	tags *pathTags
	path string
}

// within returns the key of what lies one step further, in values of the type t.
func (k pruneKey) within(step string, t reflect.Type) pruneKey {
	k.t = t
	if k.tags != nil {
		k.path += step
		if !k.tags.leadFurther(k.path) {
			k.tags, k.path = nil, ""
		}
	}
	return k
}

// pruneRuleTable holds the rules of types. It is safe for concurrent use.
type pruneRuleTable struct {
	mu sync.Mutex
	// roots holds the rules of the types of objects.
	roots map[reflect.Type]*pruneRules
	// byType holds rules before they are complete, because a type may contain itself.
	byType map[pruneKey]*pruneRules
}

// rulesOfObject returns the rules of the type of obj. Only the schema of an own kind requires members: the kind has a
// Definition, and is not foreign.
func (p *pruneRuleTable) rulesOfObject(obj Object) *pruneRules {
	key := pruneKey{t: reflect.TypeOf(obj).Elem()}
	p.mu.Lock()
	known := p.roots[key.t]
	p.mu.Unlock()
	if known != nil {
		return known
	}
	if d, ok := obj.(Defined); ok {
		if definition, err := definitionOf(d); err == nil && !definition.Foreign {
			key.isOwn = true
			if len(definition.Tags) > 0 {
				key.tags = &pathTags{definition.Tags}
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.roots == nil {
		p.roots = make(map[reflect.Type]*pruneRules)
	}
	made := p.rulesOfLocked(key)
	p.roots[key.t] = made
	return made
}

// rulesOf returns the rules of the values of a type that no schema of an own kind describes.
func (p *pruneRuleTable) rulesOf(t reflect.Type) *pruneRules {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rulesOfLocked(pruneKey{t: t})
}

// indirect returns the value that v points to or, for an interface, the value in it, with its rules. rules are the
// rules of v.
func (p *pruneRuleTable) indirect(rules *pruneRules, v reflect.Value) (*pruneRules, reflect.Value) {
	if rules.isVerbatim() {
		return rules, v
	}
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if rules.isInterface && v.IsValid() {
		rules = p.rulesOf(v.Type())
	}
	return rules, v
}

// rulesOfLocked returns the rules of a type, and makes them if there are none.
func (p *pruneRuleTable) rulesOfLocked(key pruneKey) *pruneRules {
	if known, ok := p.byType[key]; ok {
		return known
	}
	t := key.t
	if t.Kind() == reflect.Pointer && !encodesItself(t) {
		key.t = t.Elem()
		return p.rulesOfLocked(key)
	}
	if p.byType == nil {
		p.byType = make(map[pruneKey]*pruneRules)
	}
	made := new(pruneRules)
	p.byType[key] = made
	if encodesItself(t) {
		made.changesByEncoding = t.Kind() == reflect.Struct && !isEncoder(t)
		return made
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		made.elem = p.rulesOfLocked(key.within("[*]", t.Elem()))
	case reflect.Interface:
		made.isInterface = true
	case reflect.Struct:
		made.members = make(map[string]member, t.NumField())
		p.addMembersLocked(made, key, false, nil)
	}
	return made
}

// addMembersLocked adds the members of the struct key.t to made. The struct is embedded in the structs of outers, and
// isPointed is true if a pointer leads to it.
func (p *pruneRuleTable) addMembersLocked(made *pruneRules, key pruneKey, isPointed bool, outers []reflect.Type) {
	if slices.Contains(outers, key.t) {
		return
	}
	outers = append(outers, key.t)
	for i := range key.t.NumField() {
		f := key.t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		if f.Anonymous && name == "" {
			isPointer := ft.Kind() == reflect.Pointer
			if isPointer {
				ft = ft.Elem()
			}
			if ft.Kind() == reflect.Struct {
				inner, innerKey := &pruneRules{members: make(map[string]member)}, key
				innerKey.t = ft
				p.addMembersLocked(inner, innerKey, isPointed || isPointer, outers)
				for k, m := range inner.members {
					if _, isKnown := made.members[k]; !isKnown {
						m.index = append([]int{i}, m.index...)
						made.members[k] = m
					}
				}
				made.changesByEncoding = made.changesByEncoding || !isPointer && inner.changesByEncoding
				made.hidden = append(made.hidden, inner.hidden[:min(len(inner.hidden), 64-len(made.hidden))]...)
				continue
			}
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		step := "." + strings.ReplaceAll(name, ".", `\.`)
		at := key.within(step, f.Type)
		isRequired := false
		if key.isOwn {
			s := newMemberSchema(f, isPointed || mayBeOmitted(options), key.tags.of(key.path+step))
			at.isOwn, isRequired = s.isDescribed, s.isRequired
		}
		rules := p.rulesOfLocked(at)
		made.members[name] = member{rules: rules, index: []int{i}, dropZero: f.Type.Kind() == reflect.Struct && !isRequired}
		made.changesByEncoding = made.changesByEncoding || f.Type.Kind() == reflect.Struct && rules.changesByEncoding
		if len(made.hidden) < 64 && hasOption(options, "omitzero") && hasMethodOf[interface{ IsZero() bool }](f.Type) {
			made.hidden = append(made.hidden, name)
		}
	}
}

// mayBeOmitted reports whether the options of a json tag make the member optional.
func mayBeOmitted(options string) bool {
	return hasOption(options, "omitempty") || hasOption(options, "omitzero")
}

// hasOption reports whether the options of a json tag include want.
func hasOption(options, want string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == want {
			return true
		}
	}
	return false
}

// encodesItself reports whether a type, or a pointer to it, has methods that encode it as JSON or text.
func encodesItself(t reflect.Type) bool { return isEncoder(t) || isEncoder(reflect.PointerTo(t)) }

// isEncoder reports whether the values of a type have methods that encode them as JSON or text.
func isEncoder(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[stdjson.Marshaler]()) || t.Implements(reflect.TypeFor[json.MarshalerTo]()) ||
		t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// hasMethodOf reports whether t, or a pointer to t, implements the interface I.
func hasMethodOf[I any](t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[I]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[I]())
}
