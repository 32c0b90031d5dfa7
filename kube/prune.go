package kube

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/kube/wire"
)

// pruner encodes objects for an apply. An apply must contain less than the JSON of Go structs: a
// struct that was never set encodes as {} or as {"host":"","port":0}, and a nil slice as null. The server would record
// them as fields that the author owns. A Deployment of which only the replicas are set encodes as
//
//	{"metadata":{"name":"web"},
//	 "spec":{"replicas":2,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}}
//
// and is applied as
//
//	{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2}}
//
// The Go value alone shows which structs were set. The JSON does not show it: a LabelSelector for all objects encodes
// as {} too. So the pruner reads the Go value along with its JSON, and leaves out each struct that is the zero value of
// its Go type and not behind a pointer. The schema of an own kind requires some members. These are sent in any case.
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
	full, err := p.encode(obj)
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
	full, err := p.encode(obj)
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

// setsStatus reports whether obj has a status that was set.
func (p *pruner) setsStatus(obj Object) bool {
	if u, ok := obj.(interface{ UnstructuredContent() map[string]any }); ok {
		return u.UnstructuredContent()["status"] != nil
	}
	status := p.table.rulesOfObject(obj).members["status"].fieldOf(reflect.ValueOf(obj).Elem())
	return status.IsValid() && !status.IsZero()
}

// encode returns the JSON of obj. It does not change obj, whose zero values are still to be found.
func (p *pruner) encode(obj Object) ([]byte, error) {
	if !p.table.rulesOfObject(obj).changesByEncoding {
		return Marshal(obj)
	}
	encoded := reflect.New(reflect.TypeOf(obj).Elem())
	encoded.Elem().Set(reflect.ValueOf(obj).Elem())
	return Marshal(encoded.Interface())
}

// appendMembers appends the members of obj for which wanted returns true, and closes the object. full is
// the JSON of obj. dst holds the kind already.
func (p *pruner) appendMembers(dst, full []byte, obj Object, wanted func(name string) bool) ([]byte, error) {
	value := reflect.ValueOf(obj).Elem()
	root := p.table.rulesOfObject(obj)
	d := jsonDecoder(full)
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.Join(errors.New("it is no JSON object"), err)
	}
	var written hiddenSet
	for d.PeekKind() != '}' {
		name, err := readName(d)
		if err != nil {
			return nil, err
		}
		written |= root.hiddenMember(name)
		m := root.members[name]
		switch {
		case name == "apiVersion" || name == "kind" || !wanted(name):
			err = d.SkipValue()
		case name == "metadata":
			if m.rules == nil { // serverWritten is dropped from an unstructured object too
				m.rules = &pruneRules{members: map[string]member{}}
			}
			m.dropZero = false
			dst, err = p.appendMember(dst, d, name, m, value, serverWritten)
		default:
			if name == "status" {
				// No schema requires a status. The server would make null of {} where it removes fields, and refuse the null.
				m.dropZero, m.dropEmpty = true, true
			}
			dst, err = p.appendMember(dst, d, name, m, value, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	dst, err := p.appendHidden(dst, root, written, value, wanted)
	return append(dst, '}'), err
}

// appendMember appends one member of an object, unless the member is dropped. in is the struct
// that has the member. without holds the members of the value to drop.
func (p *pruner) appendMember(
	dst []byte, d *jsontext.Decoder, name string, m member, in reflect.Value, without map[string]bool,
) ([]byte, error) {
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

// appendHidden appends the members of the struct v that are set, although the encoder did not write them. written holds
// the hidden members that it wrote.
func (p *pruner) appendHidden(
	dst []byte, rules *pruneRules, written hiddenSet, v reflect.Value, wanted func(name string) bool,
) ([]byte, error) {
	for _, name := range rules.hidden {
		m := rules.members[name]
		value := m.fieldOf(v)
		if written&rules.hiddenMember(name) != 0 || !wanted(name) || !value.IsValid() || !value.CanInterface() ||
			isUnset(value) {
			continue
		}
		data, err := Marshal(value.Interface())
		if err != nil {
			return nil, err
		}
		if dst, err = p.appendMember(dst, jsonDecoder(data), name, m, v, nil); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// isUnset reports whether v is the zero value of its type, or has no elements.
func isUnset(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// appendValue appends the next value, which is the JSON of the Go value v.
func (p *pruner) appendValue(
	dst []byte, d *jsontext.Decoder, rules *pruneRules, v reflect.Value, without map[string]bool,
) ([]byte, error) {
	if rules, v = p.table.indirect(rules, v); rules.isVerbatim() {
		raw, err := d.ReadValue()
		return append(dst, raw...), err
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
func (p *pruner) appendObject(
	dst []byte, d *jsontext.Decoder, rules *pruneRules, v reflect.Value, without map[string]bool,
) ([]byte, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	var written hiddenSet
	for d.PeekKind() != '}' {
		name, err := readName(d)
		if err != nil {
			return nil, err
		}
		written |= rules.hiddenMember(name)
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
			if !rules.elem.isVerbatim() {
				element = elementOf(v, name)
			}
			dst, err = p.appendValue(dst, d, rules.elem, element, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	dst, err := p.appendHidden(dst, rules, written, v, func(name string) bool { return !without[name] })
	return append(dst, '}'), err
}

// elementAt returns an element of a slice, or the invalid Value if it is not known.
func elementAt(v reflect.Value, i int) reflect.Value {
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array || i >= v.Len() {
		return reflect.Value{}
	}
	return v.Index(i)
}

// elementOf returns the element of a map whose key encodes as key, or the invalid Value if it is not known.
func elementOf(v reflect.Value, key string) reflect.Value {
	if v.Kind() != reflect.Map {
		return reflect.Value{}
	}
	t := v.Type().Key()
	if t.Kind() == reflect.String && !encodesItself(t) {
		return v.MapIndex(reflect.ValueOf(key).Convert(t))
	}
	for each := v.MapRange(); each.Next(); {
		if name, ok := encodedKey(each.Key()); ok && name == key {
			return each.Value()
		}
	}
	return reflect.Value{}
}

// encodedKey returns the text of a key of a map in JSON. It reports false if the text is not known.
func encodedKey(key reflect.Value) (text string, ok bool) {
	if !key.CanInterface() {
		return "", false
	}
	if m, ok := key.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		return string(text), err == nil
	}
	return fmt.Sprint(key.Interface()), true
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
