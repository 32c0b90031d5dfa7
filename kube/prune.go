package kube

import (
	"errors"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/kube/wire"
)

// pruner encodes objects for an apply. An apply must contain less than the JSON of Go structs: a
// struct that was never set encodes as {}, and a nil slice as null. The server would record
// both as fields that the author owns. A Deployment of which only the replicas are set encodes as
//
//	{"metadata":{"name":"web"},
//	 "spec":{"replicas":2,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}}
//
// and is applied as
//
//	{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2}}
//
// The JSON alone does not show which fields were never set: the zero values of an
// IntOrString and of a Quantity encode as 0 and "0". So the pruner reads the Go value along with
// its JSON.
//
// In types of k8s.io/api an empty struct is left out. The schema of a type that defines itself requires
// every struct without omitempty, and has no defaults for the fields of a missing struct. In these types {}
// is sent unless the tag has omitempty.
type pruner struct{ table pruneRuleTable }

func newPruner() *pruner { return new(pruner) }

// serverWritten holds the members of metadata that the server sets. No apply may claim them.
var serverWritten = map[string]bool{
	"managedFields": true, "creationTimestamp": true, "generation": true, "selfLink": true,
	"deletionTimestamp": true, "deletionGracePeriodSeconds": true,
}

// applyBody returns the body of an apply of obj, without fields that were never set. withStatus is
// false for a resource whose status has a subresource: the server would ignore the status.
func (p *pruner) applyBody(obj Object, r wire.Resource, withStatus bool) ([]byte, error) {
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
func (p *pruner) statusBody(obj Object, r wire.Resource, resourceVersion string) ([]byte, error) {
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

// appendMembers appends the members of obj for which wanted returns true, and closes the object. full is
// the JSON of obj. dst holds the kind already.
func (p *pruner) appendMembers(dst, full []byte, obj Object, wanted func(name string) bool) ([]byte, error) {
	value := reflect.ValueOf(obj).Elem()
	_, isDefined := obj.(Defined)
	root := p.table.rulesOf(pruneKey{value.Type(), isDefined})
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
			if m.rules == nil { // serverWritten is dropped from an unstructured object too
				m.rules = &pruneRules{members: map[string]member{}}
			}
			m.dropEmpty = false
			dst, err = p.appendMember(dst, d, name, m, value, serverWritten)
		default:
			// An empty status is left out, which removes the fields applied before. The
			// server would make null of {}, and refuse null as invalid.
			m.dropEmpty = m.dropEmpty || name == "status"
			dst, err = p.appendMember(dst, d, name, m, value, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// appendMember appends one member of an object, unless the member is dropped. in is the struct
// that has the member. without holds the members of the value to drop.
func (p *pruner) appendMember(dst []byte, d *jsontext.Decoder, name string, m member, in reflect.Value, without map[string]bool) ([]byte, error) {
	value := m.fieldOf(in)
	if m.dropZero && value.IsValid() && value.IsZero() {
		return dst, d.SkipValue()
	}
	before := len(dst)
	if dst[before-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(appendString(dst, name), ':')
	start := len(dst)
	dst, err := p.appendValue(dst, d, m.rules, value, without)
	if err != nil {
		return nil, err
	}
	if v := dst[start:]; string(v) == "null" || m.dropEmpty && string(v) == "{}" {
		return dst[:before], nil
	}
	return dst, nil
}

// appendValue appends the next value, which is the JSON of the Go value v.
func (p *pruner) appendValue(dst []byte, d *jsontext.Decoder, rules *pruneRules, v reflect.Value, without map[string]bool) ([]byte, error) {
	if rules == nil || rules.members == nil && rules.elem == nil {
		raw, err := d.ReadValue()
		return append(dst, raw...), err
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch kind := d.PeekKind(); {
	case kind == '{':
		return p.appendObject(dst, d, rules, v, without)
	case kind == '[' && rules.elem != nil:
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
		dst = append(dst, '[')
		for i := 0; d.PeekKind() != ']'; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = p.appendValue(dst, d, rules.elem, elementAt(v, i), nil); err != nil {
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

// appendObject appends the next value, which is the JSON object of the Go value v, without some members.
func (p *pruner) appendObject(dst []byte, d *jsontext.Decoder, rules *pruneRules, v reflect.Value, without map[string]bool) ([]byte, error) {
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
		case rules.members != nil:
			dst, err = p.appendMember(dst, d, name, rules.members[name], v, nil)
		default: // a map: its author set every key
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, name), ':')
			var element reflect.Value
			if rules.elem.members != nil || rules.elem.elem != nil {
				element = elementOf(v, name)
			}
			dst, err = p.appendValue(dst, d, rules.elem, element, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return append(dst, '}'), err
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

// readName reads the name of a member.
func readName(d *jsontext.Decoder) (string, error) {
	token, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

// appendString appends s as JSON.
func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // fails only for invalid UTF-8, which it mends
	return dst
}
