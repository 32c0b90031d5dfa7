package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// errKept is the reason of a field that the options list without values.
var errKept = errors.New("the options keep the value of the sample")

// optionValues returns the values of a field in the options. A nil stands for the absent field.
func optionValues(contents []any, at position) []value {
	var all []value
	for _, content := range contents {
		if content == nil {
			all = append(all, absent())
			continue
		}
		all = append(all, value{name: nameOf("value", content), content: content})
	}
	return at.distinct(all)
}

// absent returns the value of a field that is removed.
func absent() value { return value{name: absentName, isAbsent: true} }

// nameOf returns the name of a value among several of one kind, such as enum:Always.
func nameOf(kind string, content any) string {
	if text, ok := content.(string); ok {
		return kind + ":" + text
	}
	data, err := encode(content)
	if err != nil {
		return kind
	}
	return kind + ":" + string(data)
}

// position is a field in the walk.
type position struct {
	path   path
	schema *Schema
	// sample is the value in the sample, if isPresent is true.
	sample    any
	isPresent bool
	// isRequired is true if the value that contains the field needs the field.
	isRequired bool
	// isInvented is true within an object that the sample does not have.
	isInvented bool
	// second is the value in the second sample, if isInSecond is true.
	second     any
	isInSecond bool
}

// distinct returns those values that differ from the sample's and from each other.
func (at position) distinct(all []value) []value {
	var kept []value
	for _, v := range all {
		isSample := v.isAbsent && !at.isPresent || !v.isAbsent && at.isPresent && isEqual(v.content, at.sample)
		isKept := slices.ContainsFunc(kept, func(k value) bool {
			return k.isAbsent == v.isAbsent && isEqual(k.content, v.content)
		})
		if !isSample && !isKept {
			kept = append(kept, v)
		}
	}
	return kept
}

// suggest returns the values of a field that its schema suggests. It also returns the reason if there are no
// values, or only the absent one.
func (at position) suggest() ([]value, error) {
	var all []value
	// A server fills an absent field with its default, so both are the same declared state.
	if at.isPresent && !at.isRequired && len(at.schema.Default) == 0 {
		all = append(all, absent())
	}
	if len(at.schema.Default) > 0 {
		content, err := decode(at.schema.Default)
		if err != nil {
			return nil, err
		}
		all = append(all, value{name: "default", content: content})
	}
	more, err := at.suggestPresent()
	kept := at.distinct(append(at.secondValues(), append(all, more...)...))
	if len(kept) > 0 && errors.Is(err, errOpaque) && at.isInSecond {
		err = nil
	}
	if err == nil && len(kept) == 0 {
		err = errNoOtherValue
	}
	return kept, err
}

// secondValues returns the value of the second sample, if it has the field. The members of an object have values of
// their own.
func (at position) secondValues() []value {
	if !at.isInSecond || at.isPresent && len(at.schema.Properties) > 0 {
		return nil
	}
	return []value{{name: secondName, content: at.second}}
}

// suggestPresent returns the values that are neither absent nor the default.
func (at position) suggestPresent() ([]value, error) {
	s := at.schema
	switch {
	case len(s.Enum) > 0:
		return enumValues(s.Enum)
	case s.isQuantity():
		return at.quantityValues()
	case s.IntOrString:
		other := int64(1)
		if isEqual(at.sample, other) {
			other = 2
		}
		return []value{{name: "other", content: other}}, nil
	}
	switch s.Type {
	case typeBoolean:
		return []value{{name: "true", content: true}, {name: "false", content: false}}, nil
	case typeInteger, typeNumber:
		return at.numberValues()
	case typeObject:
		return at.objectValues()
	case typeArray:
		return at.listValues()
	case typeString:
		return at.textValues()
	}
	return nil, errAnyType
}

// textValues returns another text for a string of the sample, unless the schema restricts the text in a way that only
// people understand.
func (at position) textValues() ([]value, error) {
	s := at.schema
	text, isText := at.sample.(string)
	if !at.isPresent || !isText || s.Pattern != "" || s.Format != "" {
		return nil, errOpaque
	}
	other := OtherText(text)
	if s.MaxLength != nil && len(other) > *s.MaxLength {
		return nil, errOpaque
	}
	return []value{{name: "other", content: other}}, nil
}

func enumValues(enum []json.RawMessage) ([]value, error) {
	var all []value
	for _, data := range enum {
		content, err := decode(data)
		if err != nil {
			return nil, err
		}
		all = append(all, value{name: nameOf("enum", content), content: content})
	}
	return all, nil
}

// numberValues returns the least and the greatest number, and another number near the sample's number.
func (at position) numberValues() ([]value, error) {
	s := at.schema
	low, high, err := s.bounds()
	if err != nil {
		return nil, err
	}
	all := []value{{name: "minimum", content: s.number(low)}, {name: "maximum", content: s.number(high)}}
	step := s.step()
	if step == 0 {
		step = (high - low) / 4
	}
	near := low
	if n, ok := numberOf(at.sample); ok && low <= n && n <= high {
		near = n
	}
	for _, n := range []float64{near + step, near - step, near + 2*step, near - 2*step} {
		if low < n && n < high {
			all = append(all, value{name: "other", content: s.number(n)})
			break
		}
	}
	return all, nil
}

// numberOf returns a number of JSON, which Go has in two types.
func numberOf(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// quantityValues returns half and twice the quantity of the sample, or of the default.
func (at position) quantityValues() ([]value, error) {
	text := fmt.Sprint(at.sample)
	if !at.isPresent {
		if len(at.schema.Default) == 0 {
			return nil, errQuantity
		}
		text = strings.Trim(string(at.schema.Default), `"`)
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil, fmt.Errorf("the quantity %s: %w", text, err)
	}
	half := resource.NewMilliQuantity(q.MilliValue()/2, q.Format)
	if whole := resource.NewQuantity(q.Value(), q.Format); q.Value() >= 2 && q.Cmp(*whole) == 0 { // whole bytes stay whole
		half = resource.NewQuantity(q.Value()/2, q.Format)
	}
	double := q.DeepCopy()
	double.Add(q)
	return []value{{name: "half", content: half.String()}, {name: "double", content: double.String()}}, nil
}

// objectValues returns the values of an object as a whole. The members of an object have values of their own.
func (at position) objectValues() ([]value, error) {
	s := at.schema
	members, _ := at.sample.(map[string]any)
	if s.isMap() {
		return at.mapValues(members)
	}
	if at.isPresent {
		if len(s.Properties) == 0 {
			return nil, errAnyType
		}
		return []value{}, nil
	}
	minimal, err := s.minimal()
	if err != nil {
		return nil, err
	}
	return []value{{name: "present", content: minimal}}, nil
}

// mapValues returns the map without entries, the map with one entry less, and the map with one entry more. The
// new entry has the value of another entry.
func (at position) mapValues(entries map[string]any) ([]value, error) {
	s, names := at.schema, slices.Sorted(maps.Keys(entries))
	if len(names) == 0 {
		return nil, errMap
	}
	var all []value
	if s.MinProperties == 0 {
		all = append(all, value{name: "empty", content: map[string]any{}})
	}
	if fewer := len(names) - 1; fewer > 0 && fewer >= s.MinProperties {
		shorter := maps.Clone(entries)
		delete(shorter, names[fewer])
		all = append(all, value{name: "fewer", content: shorter})
	}
	const added = "explored"
	if _, exists := entries[added]; !exists && (s.MaxProperties == nil || len(names) < *s.MaxProperties) {
		longer := maps.Clone(entries)
		longer[added] = entries[names[0]]
		all = append(all, value{name: "more", content: longer})
	}
	return all, nil
}

// listValues returns the empty list, a list with one item less, and a list with one item more, if the schema
// shows what an item can be.
func (at position) listValues() ([]value, error) {
	s := at.schema
	items, _ := at.sample.([]any)
	var all []value
	if s.MinItems == 0 && len(items) > 0 {
		all = append(all, value{name: "empty", content: []any{}})
	}
	if fewer := len(items) - 1; fewer > 0 && fewer >= s.MinItems {
		all = append(all, value{name: "fewer", content: slices.Clone(items[:fewer])})
	}
	if s.Items != nil && (s.MaxItems == nil || len(items) < *s.MaxItems) {
		for _, item := range at.newItems() {
			if !slices.ContainsFunc(items, func(i any) bool { return isEqual(i, item) }) {
				all = append(all, value{name: "more", content: append(slices.Clone(items), item)})
				break
			}
		}
	}
	if len(all) == 0 {
		return nil, errList
	}
	return all, nil
}

// newItems returns the candidates for a new item of a list.
func (at position) newItems() []any {
	added := position{schema: at.schema.Items, isRequired: true}
	if items, _ := at.sample.([]any); len(items) > 0 && at.schema.Items.Type == typeString {
		added.sample, added.isPresent = items[0], true // another text is made of the first one
	}
	values, err := added.suggestPresent()
	if err != nil {
		return nil
	}
	var all []any
	for _, v := range values {
		all = append(all, v.content)
	}
	return all
}

// isEqual reports whether two values are the same in JSON. Numbers of different Go types can be equal.
func isEqual(a, b any) bool {
	x, errX := encode(a)
	y, errY := encode(b)
	return errors.Join(errX, errY) == nil && bytes.Equal(x, y)
}

// encode returns the JSON of a value. Equal values have equal JSON.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a value: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// decode returns the value of JSON in a schema. Integers stay integers.
func decode(data json.RawMessage) (any, error) {
	var v any
	if err := utiljson.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("decode %s in the schema: %w", data, err)
	}
	return v, nil
}
