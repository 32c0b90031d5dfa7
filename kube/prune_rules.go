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
//		Spec struct{...} `json:"spec"`
//	}
//
// there are three members. The member "name" has empty rules: its JSON stays. The member "port" has
// dropZero, and "spec" has dropEmpty.
type pruneRules struct {
	// members is set for structs: how to prune each member, by its JSON name.
	members map[string]member
	// elem is set for slices, arrays and maps. Without elem and members the JSON stays
	// unchanged.
	elem *pruneRules
}

// member describes how to prune one member of a struct.
type member struct {
	rules *pruneRules
	// index is the path to the field, as reflect has it.
	index []int
	// dropZero is true for a struct with a method that encodes it, if the struct is not behind a pointer.
	// The zero value is left out, although its JSON is not empty. Of the zeros that an author sets, the 0
	// of a Quantity is sent, because its Go value is not the zero value, and the 0 of an IntOrString is
	// not.
	dropZero bool
	// dropEmpty is true for a struct that is not behind a pointer: without content it is left
	// out.
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
	// isInDefined is true inside of types with a [Definition].
	isInDefined bool
}

// pruneRuleTable holds the rules of types. It is safe for concurrent use.
type pruneRuleTable struct {
	mu sync.Mutex
	// byType holds rules before they are complete, because a type may contain itself.
	byType map[pruneKey]*pruneRules
}

// rulesOf returns the rules of a type.
func (p *pruneRuleTable) rulesOf(key pruneKey) *pruneRules {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rulesOfLocked(key)
}

// rulesOfLocked returns the rules of a type, and makes them if there are none.
func (p *pruneRuleTable) rulesOfLocked(key pruneKey) *pruneRules {
	if known, ok := p.byType[key]; ok {
		return known
	}
	t := key.t
	if t.Kind() == reflect.Pointer && !encodesItself(t) {
		return p.rulesOfLocked(pruneKey{t.Elem(), key.isInDefined})
	}
	if p.byType == nil {
		p.byType = make(map[pruneKey]*pruneRules)
	}
	made := new(pruneRules)
	p.byType[key] = made
	if encodesItself(t) {
		return made
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		made.elem = p.rulesOfLocked(pruneKey{t.Elem(), key.isInDefined})
	case reflect.Struct:
		made.members = make(map[string]member, t.NumField())
		p.addMembersLocked(made.members, key, nil)
	}
	return made
}

// addMembersLocked adds the members of the struct key.t, which is embedded in the structs of outers.
func (p *pruneRuleTable) addMembersLocked(members map[string]member, key pruneKey, outers []reflect.Type) {
	if slices.Contains(outers, key.t) {
		return
	}
	outers = append(outers, key.t)
	for i := range key.t.NumField() {
		f := key.t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		if f.Anonymous && name == "" {
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			if ft.Kind() == reflect.Struct {
				inner := make(map[string]member)
				p.addMembersLocked(inner, pruneKey{ft, key.isInDefined}, outers)
				for k, m := range inner {
					if _, isKnown := members[k]; !isKnown {
						m.index = append([]int{i}, m.index...)
						members[k] = m
					}
				}
				continue
			}
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		m := member{rules: p.rulesOfLocked(pruneKey{f.Type, key.isInDefined}), index: []int{i}}
		if f.Type.Kind() == reflect.Struct && (!key.isInDefined || mayBeOmitted(options)) {
			// The {} of a type that encodes itself may be meant, as in a RawExtension.
			m.dropZero = encodesItself(f.Type)
			m.dropEmpty = !m.dropZero
		}
		members[name] = m
	}
}

// mayBeOmitted reports whether the options of a json tag make the member optional.
func mayBeOmitted(options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == "omitempty" || option == "omitzero" {
			return true
		}
	}
	return false
}

// encodesItself reports whether a type has methods that encode it as JSON or text.
func encodesItself(t reflect.Type) bool {
	for _, marshaler := range []reflect.Type{
		reflect.TypeFor[stdjson.Marshaler](), reflect.TypeFor[json.MarshalerTo](), reflect.TypeFor[encoding.TextMarshaler](),
	} {
		if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
			return true
		}
	}
	return false
}
