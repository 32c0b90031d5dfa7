// Package fieldset decodes, encodes and searches field sets: the fieldsV1 of an entry of managedFields, which has the
// fields that a field manager owns.
package fieldset

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/yare-go/yare/internal/jsonscan/kubejson"
)

// Set is a set of fields, as a tree of elements: "f:NAME" is a member of an object, "k:{KEYS}" is the item of a list
// with these keys, "v:VALUE" is a value of a set, and "." is the object or item itself. A place without anything below
// it is a leaf: it is owned as a whole. The fields spec.replicas and the label team are
//
//	{"f:metadata":{"f:labels":{"f:team":{}}},"f:spec":{"f:replicas":{}}}
type Set map[string]Set

// Decode returns the fields of an entry of managedFields. Without fieldsV1 the set is empty.
func Decode(f *metav1.FieldsV1) (Set, error) {
	fields := make(Set)
	if f == nil {
		return fields, nil
	}
	return fields, kubejson.Unmarshal(f.GetRawBytes(), &fields)
}

// Encode returns the fields for an entry of managedFields.
func (s Set) Encode() (*metav1.FieldsV1, error) {
	raw, err := kubejson.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode fields: %w", err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}

// Add adds the fields of other, which s may then share.
func (s Set) Add(other Set) {
	for element, below := range other {
		own := s[element]
		if own == nil {
			s[element] = below
			continue
		}
		isLeaf := len(own) == 0 || len(below) == 0
		if own.Add(below); isLeaf && len(own) > 0 {
			own["."] = Set{}
		}
	}
}

// HasParts reports whether parts of a place are owned, each by itself. below is what the set has below the place.
func HasParts[V any](below map[string]V) bool {
	_, itself := below["."]
	return len(below) > 1 || len(below) == 1 && !itself
}

// Item is what an element says of an item of a list: its keys, or its value.
type Item struct {
	// Keys is nil for a value of a set.
	Keys  map[string]any
	value any
}

// ParseItem returns the item of an element. It reports whether the element names an item.
func ParseItem(element string) (item Item, isItem bool) {
	if text, ok := strings.CutPrefix(element, "k:"); ok {
		return item, utiljson.Unmarshal([]byte(text), &item.Keys) == nil && item.Keys != nil
	}
	text, isValue := strings.CutPrefix(element, "v:")
	return item, isValue && utiljson.Unmarshal([]byte(text), &item.value) == nil
}

// IndexIn returns the index of the only item of a decoded list with the keys, or -1 if there is none or more than one.
// With isDefaulted, an item may leave keys out, because the server sets them. An item that has all of them precedes
// such items. An example is a port {port: 80}, which has the keys {"port": 80, "protocol": "TCP"}: TCP is the default.
//
// Of a set, it returns the index of the first item with the value.
func (i Item) IndexIn(list []any, isDefaulted bool) int {
	if i.Keys == nil {
		return slices.IndexFunc(list, func(item any) bool { return reflect.DeepEqual(item, i.value) })
	}
	exact, partial, exacts, partials := -1, -1, 0, 0
	for n := range list {
		item, isObject := list[n].(map[string]any)
		if !isObject {
			return -1
		}
		isSame, isComplete := true, true
		for name, key := range i.Keys {
			own, isSet := item[name]
			isSame = isSame && (!isSet || reflect.DeepEqual(own, key))
			isComplete = isComplete && isSet
		}
		switch {
		case isSame && isComplete:
			exact, exacts = n, exacts+1
		case isSame && isDefaulted:
			partial, partials = n, partials+1
		}
	}
	switch {
	case exacts == 1:
		return exact
	case exacts == 0 && partials == 1:
		return partial
	}
	return -1
}

// PartOf returns the part of a decoded object or list that an element names.
func PartOf(whole any, element string) (part any, isPresent bool) {
	if name, isMember := strings.CutPrefix(element, "f:"); isMember {
		object, _ := whole.(map[string]any)
		part, isPresent = object[name]
		return part, isPresent
	}
	list, _ := whole.([]any)
	if item, isItem := ParseItem(element); isItem {
		if i := item.IndexIn(list, true); i >= 0 {
			return list[i], true
		}
	}
	return nil, false
}
