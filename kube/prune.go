package kube

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// pruner encodes objects for an apply. An apply must contain less than the JSON of Go structs: a
// struct that was never set encodes as {}, and a nil slice as null. The server would record
// both as fields that the author owns.
//
// The JSON alone does not show which fields were never set: the zero values of an
// IntOrString and of a Quantity encode as 0 and "0". So the pruner reads the Go value along with
// its JSON.
//
// In types of k8s.io/api an empty struct is left out. Types that define themselves have a schema
// that requires every struct without omitempty, and no defaults for the fields of a struct that
// is missing. In those types {} is sent unless the tag has omitempty.
type pruner struct {
	mu    sync.Mutex
	plans map[planKey]*plan
}

type planKey struct {
	t reflect.Type
	// tagged is true inside of types that define themselves.
	tagged bool
}

func newPruner() *pruner { return &pruner{plans: make(map[planKey]*plan)} }

// plan describes how to prune the JSON of one Go type.
type plan struct {
	// members is set for structs: what becomes of each member by its JSON name.
	members map[string]member
	// elem is set for slices, arrays and maps. Without elem and members the JSON stays
	// unchanged.
	elem *plan
}

type member struct {
	plan *plan
	// index is the path to the field, as reflect has it.
	index []int
	// dropZero is set for a struct that encodes itself and is not behind a pointer: its zero
	// value is left out, although its JSON is not empty. A zero that was set is sent if its Go
	// value differs from the zero value, as for a Quantity and not for an IntOrString.
	dropZero bool
	// dropEmpty is set for a struct that is not behind a pointer: without content it is left
	// out.
	dropEmpty bool
}

// serverWritten holds the members of metadata that no apply may or should claim.
var serverWritten = map[string]bool{
	"managedFields": true, "creationTimestamp": true, "generation": true, "selfLink": true,
	"deletionTimestamp": true, "deletionGracePeriodSeconds": true,
}

// applyBody returns the body of an apply of obj, without fields that were never set. withStatus is
// false for a resource whose status has a subresource: the server would ignore the status.
func (p *pruner) applyBody(obj Object, r Resource, withStatus bool) ([]byte, error) {
	full, err := Marshal(obj)
	if err != nil {
		return nil, err
	}
	return p.appendMembers(openObject(r, len(full)), full, obj, func(name string) bool {
		return name != "status" || withStatus
	})
}

// statusBody returns the body of an apply of the status of obj. Its metadata has only
// what names the object, and resourceVersion.
func (p *pruner) statusBody(obj Object, r Resource, resourceVersion string) ([]byte, error) {
	full, err := Marshal(obj)
	if err != nil {
		return nil, err
	}
	identity := map[string]string{"name": obj.GetName()}
	for k, v := range map[string]string{
		"namespace": obj.GetNamespace(), "uid": string(obj.GetUID()), "resourceVersion": resourceVersion,
	} {
		if v != "" {
			identity[k] = v
		}
	}
	metadata, err := Marshal(identity)
	if err != nil {
		return nil, err
	}
	dst := append(append(openObject(r, len(full)), `,"metadata":`...), metadata...)
	return p.appendMembers(dst, full, obj, func(name string) bool { return name == "status" })
}

// appendMembers appends the members of obj, whose JSON is full, for which wanted returns
// true, and closes the object. dst holds the kind already.
func (p *pruner) appendMembers(dst, full []byte, obj Object, wanted func(name string) bool) ([]byte, error) {
	value := reflect.ValueOf(obj).Elem()
	_, defined := obj.(Defined)
	root := p.plan(planKey{value.Type(), defined})
	d := jsonDecoder(full)
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.Join(errors.New("it is no JSON object"), err)
	}
	for d.PeekKind() != '}' {
		name, err := readName(d)
		if err != nil {
			return nil, err
		}
		m := root.members[name]
		switch {
		case name == "apiVersion" || name == "kind" || !wanted(name):
			err = d.SkipValue()
		case name == "metadata":
			if m.plan == nil { // serverWritten is dropped from an unstructured object too
				m.plan = &plan{members: map[string]member{}}
			}
			m.dropEmpty = false
			dst, err = p.member(dst, d, name, m, value, serverWritten)
		case name == "status":
			// An empty status is left out, which removes the fields applied before. The
			// server would make null of {}, and refuse null as invalid.
			m.dropEmpty = true
			dst, err = p.member(dst, d, name, m, value, nil)
		default:
			dst, err = p.member(dst, d, name, m, value, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// member appends one member of an object, unless the member is dropped. in is the struct that has
// the member.
func (p *pruner) member(dst []byte, d *jsontext.Decoder, name string, m member, in reflect.Value, without map[string]bool) ([]byte, error) {
	value := m.of(in)
	if m.dropZero && value.IsValid() && value.IsZero() {
		return dst, d.SkipValue()
	}
	before := len(dst)
	if dst[before-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(appendString(dst, name), ':')
	start := len(dst)
	dst, err := p.value(dst, d, m.plan, value, without)
	if err != nil {
		return nil, err
	}
	if v := dst[start:]; string(v) == "null" || m.dropEmpty && string(v) == "{}" {
		return dst[:before], nil
	}
	return dst, nil
}

// value appends the next value, which is the JSON of the Go value v.
func (p *pruner) value(dst []byte, d *jsontext.Decoder, how *plan, v reflect.Value, without map[string]bool) ([]byte, error) {
	if how == nil || how.members == nil && how.elem == nil {
		raw, err := d.ReadValue()
		return append(dst, raw...), err
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch kind := d.PeekKind(); {
	case kind == '{':
		return p.objectValue(dst, d, how, v, without)
	case kind == '[' && how.elem != nil:
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
		dst = append(dst, '[')
		for i := 0; d.PeekKind() != ']'; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = p.value(dst, d, how.elem, elementAt(v, i), nil); err != nil {
				return nil, err
			}
		}
		_, err := d.ReadToken()
		return append(dst, ']'), err
	default:
		raw, err := d.ReadValue()
		return append(dst, raw...), err
	}
}

func (p *pruner) objectValue(dst []byte, d *jsontext.Decoder, how *plan, v reflect.Value, without map[string]bool) ([]byte, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	for d.PeekKind() != '}' {
		name, err := readName(d)
		if err != nil {
			return nil, err
		}
		switch {
		case without[name]:
			err = d.SkipValue()
		case how.members != nil:
			dst, err = p.member(dst, d, name, how.members[name], v, nil)
		default: // a map: its author set every key
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, name), ':')
			var element reflect.Value
			if how.elem.members != nil || how.elem.elem != nil {
				element = elementOf(v, name)
			}
			dst, err = p.value(dst, d, how.elem, element, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return append(dst, '}'), err
}

// of returns the member of a struct, or the invalid Value if it is not known.
func (m member) of(in reflect.Value) reflect.Value {
	if in.Kind() != reflect.Struct || len(m.index) == 0 {
		return reflect.Value{}
	}
	v, err := in.FieldByIndexErr(m.index)
	if err != nil { // inside of an embedded pointer that is nil
		return reflect.Value{}
	}
	return v
}

// elementAt returns an element of a slice, or the invalid Value if it is not known.
func elementAt(v reflect.Value, i int) reflect.Value {
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array || i >= v.Len() {
		return reflect.Value{}
	}
	return v.Index(i)
}

// elementOf returns an element of a map, or the invalid Value if it is not known.
func elementOf(v reflect.Value, key string) reflect.Value {
	if v.Kind() != reflect.Map || v.Type().Key().Kind() != reflect.String {
		return reflect.Value{}
	}
	return v.MapIndex(reflect.ValueOf(key).Convert(v.Type().Key()))
}

func readName(d *jsontext.Decoder) (string, error) {
	token, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // fails only for invalid UTF-8, which it mends
	return dst
}

func (p *pruner) plan(key planKey) *plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.planLocked(key)
}

// planLocked returns the plan of a type, and makes it if there is none. A type may contain
// itself, so the plan is stored before it is complete.
func (p *pruner) planLocked(key planKey) *plan {
	if known, ok := p.plans[key]; ok {
		return known
	}
	t := key.t
	if t.Kind() == reflect.Pointer && !encodesItself(t) {
		return p.planLocked(planKey{t.Elem(), key.tagged})
	}
	made := &plan{}
	p.plans[key] = made
	if encodesItself(t) {
		return made
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		made.elem = p.planLocked(planKey{t.Elem(), key.tagged})
	case reflect.Struct:
		made.members = make(map[string]member, t.NumField())
		p.addMembers(made.members, key, nil)
	}
	return made
}

// addMembers adds the members of the struct key.t, which is embedded in the structs of outside.
func (p *pruner) addMembers(members map[string]member, key planKey, outside []reflect.Type) {
	if slices.Contains(outside, key.t) {
		return
	}
	outside = append(outside, key.t)
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
				p.addMembers(inner, planKey{ft, key.tagged}, outside)
				for k, m := range inner {
					if _, outer := members[k]; !outer {
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
		m := member{plan: p.planLocked(planKey{f.Type, key.tagged}), index: []int{i}}
		if f.Type.Kind() == reflect.Struct && (!key.tagged || mayBeOmitted(options)) {
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
