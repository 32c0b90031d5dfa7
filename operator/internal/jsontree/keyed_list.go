package jsontree

import (
	"maps"
	"slices"

	"github.com/yare-go/yare/crd"
)

// KeyedList is a list whose items are objects with keys, such as the ports of a Pod.
type KeyedList struct {
	// Keys hold the key of each item as JSON, such as {"name":"web"}, in the order of the list.
	Keys  []string
	Items map[string]map[string]any
}

// KeyedListOf returns the items of v by their keys. A missing list has no items. It reports false if v is no list with
// keys by the schema s, if an item has no key, or if a key is there twice.
func KeyedListOf(s *crd.Schema, v any) (KeyedList, bool) {
	l := KeyedList{Items: make(map[string]map[string]any)}
	if s == nil || s.ListType != "map" {
		return l, false
	}
	if v == (Missing{}) {
		return l, true
	}
	list, isList := v.([]any)
	if !isList {
		return l, false
	}
	for _, each := range list {
		item, isObject := each.(map[string]any)
		if !isObject {
			return l, false
		}
		key, hasKey := KeyOf(s, item)
		if !hasKey || l.Items[key] != nil {
			return l, false
		}
		l.Keys = append(l.Keys, key)
		l.Items[key] = item
	}
	return l, true
}

// KeyOf returns the key of an item. It reports whether the item has a key. A key field that is missing has its default.
func KeyOf(s *crd.Schema, item map[string]any) (string, bool) {
	key := make(map[string]any, len(s.ListMapKeys))
	for _, name := range s.ListMapKeys {
		part := Member(item, name)
		if p := Property(s.Items, name); part == (Missing{}) && p != nil && p.Default != nil {
			part = Parse(p.Default)
		}
		switch part.(type) {
		case Missing, nil, []any, map[string]any:
			return "", false
		}
		key[name] = part
	}
	return string(Append(nil, key)), true
}

// Set sets the item of a key, or removes the item if v is missing. A new item is the last one. Each key is set once.
func (l *KeyedList) Set(key string, v any) {
	item, isThere := v.(map[string]any)
	switch {
	case !isThere:
		delete(l.Items, key) // the key stays in Keys
	case l.Items[key] == nil:
		l.Keys = append(slices.Clip(l.Keys), key)
		fallthrough
	default:
		l.Items[key] = item
	}
}

// Item returns the item of a key, or missing.
func (l *KeyedList) Item(key string) any {
	if item := l.Items[key]; item != nil {
		return item
	}
	return Missing{}
}

// Clone returns a copy that can be changed.
func (l *KeyedList) Clone() KeyedList { return KeyedList{l.Keys, maps.Clone(l.Items)} }

// List returns the list.
func (l *KeyedList) List() []any {
	list := make([]any, 0, len(l.Items))
	for _, key := range l.Keys {
		if item := l.Items[key]; item != nil {
			list = append(list, item)
		}
	}
	return list
}

// Arrange brings the items into their original order, as far as the order has not changed since. original and returned
// are the orders at the time when the order was recorded, and current is the order before kept items were put back.
//
// For example, original is b a x, and returned is a b:
//
//	current a b    nobody has moved a and b, so the order is the original one: b a x
//	current a c b  c is new. It stays behind a: b a c x
//	current b a    an edit has moved b. The order stays, and x comes behind its original neighbor, which is a: b a x
func (l *KeyedList) Arrange(original, returned, current []string) {
	// The keys of base keep their order. Each other key comes behind the key that it follows in other or in the list.
	base, other := original, current
	if !slices.Equal(common(returned, current), common(current, returned)) {
		base, other = current, original
	}
	placed := make(map[string]bool, len(l.Items))
	// followers holds, for each key, the keys that come directly behind it. The key "" stands for the beginning.
	followers := make(map[string][]string)
	var baseKeys []string
	for _, key := range base {
		if l.Items[key] != nil && !placed[key] {
			placed[key] = true
			baseKeys = append(baseKeys, key)
		}
	}
	for _, keys := range [][]string{other, l.Keys} {
		previous := ""
		for _, key := range keys {
			if l.Items[key] == nil {
				continue
			}
			if !placed[key] {
				placed[key] = true
				followers[previous] = append(followers[previous], key)
			}
			previous = key
		}
	}
	order := make([]string, 0, len(l.Items))
	var add func(key string)
	add = func(key string) {
		if key != "" {
			order = append(order, key)
		}
		for _, each := range followers[key] {
			add(each)
		}
	}
	add("")
	for _, key := range baseKeys {
		add(key)
	}
	l.Keys = order
}

// common returns the keys that are in others too, in their order.
func common(keys, others []string) []string {
	has := make(map[string]bool, len(others))
	for _, key := range others {
		has[key] = true
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !has[key] })
}

// Property returns the schema of a member of an object or a map, or nil if the schema has none.
func Property(s *crd.Schema, name string) *crd.Schema {
	if s == nil {
		return nil
	}
	if p := s.Properties[name]; p != nil {
		return p
	}
	return s.AdditionalProperties
}
