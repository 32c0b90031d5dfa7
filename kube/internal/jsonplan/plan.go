package jsonplan

import (
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// typePlan describes how to decode the values of one type.
type typePlan struct {
	kind kind
	t    reflect.Type
	// elem is the plan of the elements of a pointer, a slice or a map.
	elem *typePlan
	// fields are the fields of a struct.
	fields []field
	// byLength holds the indexes of the fields by the lengths of their names.
	byLength [][]uint8
	// firstCapacity is the capacity of a slice that has an element.
	firstCapacity int
}

// field is a field of a struct, or of a struct that is embedded in it.
type field struct {
	name string
	// index is the path to the field, as reflect has it.
	index []int
	plan  *typePlan
}

type kind uint8

const (
	// kindOther is a type that only the decoder of all types knows.
	kindOther kind = iota
	// kindMethod is a type that has UnmarshalJSON.
	kindMethod
	kindTime
	kindString
	kindBool
	kindInt
	kindUint
	kindPointer
	kindStruct
	kindSlice
	kindStrings
	kindMap
	kindStringMap
	// kindAny is an interface without methods.
	kindAny
)

// maxFields is how many fields the plan of a struct has at most.
const maxFields = 128

// indexByLength fills in byLength. Two fields of one name make a plan of no use: the rules of Go
// decide which one is meant.
func (p *typePlan) indexByLength() {
	names := make(map[string]bool)
	for i, f := range p.fields {
		for len(p.byLength) <= len(f.name) {
			p.byLength = append(p.byLength, nil)
		}
		p.byLength[len(f.name)] = append(p.byLength[len(f.name)], uint8(i))
		names[f.name] = true
	}
	if len(names) < len(p.fields) {
		p.kind = kindOther
	}
}

// find returns the index of the field of that name, or -1.
func (p *typePlan) find(name []byte) int {
	if len(name) < len(p.byLength) {
		for _, i := range p.byLength[len(name)] {
			if p.fields[i].name == string(name) {
				return int(i)
			}
		}
	}
	return -1
}

// planner makes the plans of types. It is safe for concurrent use.
type planner struct {
	mu sync.Mutex
	// plans holds the plan of each type. While mu is locked, the plan of a type that contains itself
	// may be incomplete.
	plans map[reflect.Type]*typePlan
}

// plan returns the complete plan of a type.
func (m *planner) plan(t reflect.Type) *typePlan {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.planLocked(t)
}

// planLocked returns the plan of a type, which is complete when the outermost call returns.
func (m *planner) planLocked(t reflect.Type) *typePlan {
	if p := m.plans[t]; p != nil {
		return p
	}
	if m.plans == nil {
		m.plans = make(map[reflect.Type]*typePlan)
	}
	p := &typePlan{t: t}
	m.plans[t] = p
	pointer := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		p.kind = kindTime
	case isKnownToLibrary(t) || hasOtherDecodeMethod(t) || hasOtherDecodeMethod(pointer):
	case t.Kind() != reflect.Pointer && pointer.Implements(reflect.TypeFor[stdjson.Unmarshaler]()):
		p.kind = kindMethod
	case t == reflect.TypeFor[[]string]():
		p.kind, p.firstCapacity = kindStrings, 4
	case t == reflect.TypeFor[map[string]string]():
		p.kind = kindStringMap
	default:
		m.fillLocked(p)
	}
	return p
}

// fillLocked fills in the plan of a type without methods.
func (m *planner) fillLocked(p *typePlan) {
	switch p.t.Kind() {
	case reflect.String:
		p.kind = kindString
	case reflect.Bool:
		p.kind = kindBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.kind = kindInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.kind = kindUint
	case reflect.Pointer:
		p.kind, p.elem = kindPointer, m.planLocked(p.t.Elem())
	case reflect.Slice:
		if p.t.Elem().Kind() == reflect.Uint8 { // it may be base64
			return
		}
		p.kind, p.elem = kindSlice, m.planLocked(p.t.Elem())
		p.firstCapacity = 1
		if p.t.Elem().Size() <= 256 {
			p.firstCapacity = 2
		}
	case reflect.Map:
		key := p.t.Key()
		if key.Kind() != reflect.String || isKnownToLibrary(key) || hasDecodeMethod(key) ||
			hasDecodeMethod(reflect.PointerTo(key)) {
			return
		}
		p.kind, p.elem = kindMap, m.planLocked(p.t.Elem())
	case reflect.Interface:
		if p.t.NumMethod() == 0 {
			p.kind = kindAny
		}
	case reflect.Struct:
		if fields, ok := m.fieldsLocked(nil, p.t, nil); ok && len(fields) <= maxFields {
			p.kind, p.fields = kindStruct, fields
			p.indexByLength()
		}
	}
}

// fieldsLocked appends the fields of a struct type, which is at index in another struct. It returns
// false if a tag or an embedded type is unusual.
func (m *planner) fieldsLocked(fields []field, t reflect.Type, index []int) (_ []field, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		tag, isTagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		embedded := f.Anonymous && name == ""
		switch {
		case tag == "-":
			continue
		case !f.IsExported() && !f.Anonymous && !isTagged:
			continue
		case !f.IsExported() || !areUsual(options, embedded) || !isUsualName(name):
			return nil, false
		case embedded:
			if f.Type.Kind() != reflect.Struct || hasDecodeMethod(f.Type) || hasDecodeMethod(reflect.PointerTo(f.Type)) {
				return nil, false
			}
			if fields, ok = m.fieldsLocked(fields, f.Type, at); !ok {
				return nil, false
			}
			continue
		case name == "":
			name = f.Name
		}
		fields = append(fields, field{name: name, index: at, plan: m.planLocked(f.Type)})
	}
	return fields, true
}

// areUsual reports whether the options of a tag do not change how a value is decoded.
func areUsual(options string, embedded bool) bool {
	for option := range strings.SplitSeq(options, ",") {
		switch {
		case option == "" || option == "omitempty" || option == "omitzero":
		case option == "inline" && embedded:
		default:
			return false
		}
	}
	return true
}

// isUsualName reports whether all packages read a name in a tag alike.
func isUsualName(name string) bool {
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' ||
			c == '$' || c == '/') {
			return false
		}
	}
	return true
}

// isKnownToLibrary reports whether the decoder of all types has rules for a type besides its kind
// and its methods.
func isKnownToLibrary(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[time.Duration]() ||
		t == reflect.TypeFor[stdjson.Number]()
}

// hasDecodeMethod reports whether values of a type decode themselves.
func hasDecodeMethod(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[stdjson.Unmarshaler]()) || hasOtherDecodeMethod(t)
}

// hasOtherDecodeMethod reports whether values of a type decode themselves by other methods than
// UnmarshalJSON.
func hasOtherDecodeMethod(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.UnmarshalerFrom]()) ||
		t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) && !t.Implements(reflect.TypeFor[stdjson.Unmarshaler]())
}
