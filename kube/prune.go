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

// pruner encodes what an apply declares. With Go structs that is less than their JSON: a
// struct that was never touched shows up as {}, a nil slice as null, and the server would
// record both as fields that the author owns.
//
// What is the cure for types of k8s.io/api is too much for types that define themselves:
// their schema requires every struct without omitempty, and has no defaults to give to
// what is inside of one that is missing. So there {} goes unless the tag says omitempty.
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

// plan says how to prune the JSON of one Go type.
type plan struct {
	// members is set for structs: what becomes of each member by its JSON name.
	members map[string]member
	// elem is set for pointers, slices and maps. Without it and members the JSON is taken
	// as it is.
	elem *plan
}

type member struct {
	plan *plan
	// dropEmpty is set for a struct that is not behind a pointer: without content it says
	// nothing.
	dropEmpty bool
}

// serverWritten are members of metadata that no apply may or should claim.
var serverWritten = map[string]bool{
	"managedFields": true, "creationTimestamp": true, "generation": true, "selfLink": true,
	"deletionTimestamp": true, "deletionGracePeriodSeconds": true,
}

// applyBody encodes obj for an apply: without what it does not say, and of the status
// subresource the status alone.
func (p *pruner) applyBody(obj Object, r Resource, subresource string) ([]byte, error) {
	full, err := Marshal(obj)
	if err != nil {
		return nil, err
	}
	_, defined := obj.(Defined)
	root := p.plan(planKey{reflect.TypeOf(obj).Elem(), defined})
	dst := openObject(r, len(full))
	if subresource != "" {
		identity := map[string]string{"name": obj.GetName()}
		for k, v := range map[string]string{
			"namespace": obj.GetNamespace(), "uid": string(obj.GetUID()), "resourceVersion": obj.GetResourceVersion(),
		} {
			if v != "" {
				identity[k] = v
			}
		}
		metadata, err := Marshal(identity)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, `,"metadata":`...), metadata...)
	}
	d := jsonDecoder(full)
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.Join(errors.New("it is no JSON object"), err)
	}
	for d.PeekKind() != '}' {
		name, err := readName(d)
		if err != nil {
			return nil, err
		}
		switch {
		case name == "apiVersion" || name == "kind",
			subresource != "" && name != subresource:
			err = d.SkipValue()
		case name == "metadata":
			m := member{plan: root.members[name].plan}
			if m.plan == nil { // of an unstructured object it must go too
				m.plan = &plan{members: map[string]member{}}
			}
			dst, err = p.member(dst, d, name, m, serverWritten)
		default:
			m := root.members[name]
			if name == "status" {
				// With the status of an object it is not for this apply to say. With
				// the subresource, nothing takes the place of what was applied before,
				// but from {} the server makes null, and then finds that invalid.
				m.dropEmpty = true
			}
			dst, err = p.member(dst, d, name, m, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// member appends one member of an object, unless it says nothing.
func (p *pruner) member(dst []byte, d *jsontext.Decoder, name string, m member, without map[string]bool) ([]byte, error) {
	before := len(dst)
	if dst[before-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(appendString(dst, name), ':')
	start := len(dst)
	dst, err := p.value(dst, d, m.plan, without)
	if err != nil {
		return nil, err
	}
	if v := dst[start:]; string(v) == "null" || m.dropEmpty && string(v) == "{}" {
		return dst[:before], nil
	}
	return dst, nil
}

// value appends the next value.
func (p *pruner) value(dst []byte, d *jsontext.Decoder, how *plan, without map[string]bool) ([]byte, error) {
	kind := d.PeekKind()
	switch {
	case kind == '{' && how != nil && (how.members != nil || how.elem != nil):
		return p.objectValue(dst, d, how, without)
	case kind == '[' && how != nil && how.elem != nil:
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
		dst = append(dst, '[')
		for first := true; d.PeekKind() != ']'; first = false {
			if !first {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = p.value(dst, d, how.elem, nil); err != nil {
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

func (p *pruner) objectValue(dst []byte, d *jsontext.Decoder, how *plan, without map[string]bool) ([]byte, error) {
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
			dst, err = p.member(dst, d, name, how.members[name], nil)
		default: // a map: every key was put there on purpose
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, name), ':')
			dst, err = p.value(dst, d, how.elem, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return append(dst, '}'), err
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

// planLocked makes the plan of a type. A type may contain itself: its plan is put in its place
// before it is made.
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

// addMembers adds those of the struct key.t, which is embedded in those of outside.
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
		members[name] = member{
			plan: p.planLocked(planKey{f.Type, key.tagged}),
			// What encodes itself may mean its {}, as a RawExtension does.
			dropEmpty: f.Type.Kind() == reflect.Struct && !encodesItself(f.Type) &&
				(!key.tagged || mayBeOmitted(options)),
		}
	}
}

// mayBeOmitted tells whether the options of a json tag say that the member is optional.
func mayBeOmitted(options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == "omitempty" || option == "omitzero" {
			return true
		}
	}
	return false
}

// encodesItself tells types whose JSON is not that of their Go kind.
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
