package convert

import (
	"maps"
	"slices"

	"github.com/yare-go/yare/crd"
)

// keyedList is a list whose items are objects with keys, such as the ports of a Pod.
type keyedList struct {
	// keys hold the key of each item as JSON, such as {"name":"web"}, in the order of the list.
	keys  []string
	items map[string]map[string]any
}

// keyedListOf returns the items of v by their keys. A missing list has no items. It reports false if v is no list with
// keys by the schema s, if an item has no key, or if a key is there twice.
func keyedListOf(s *crd.Schema, v any) (keyedList, bool) {
	l := keyedList{items: make(map[string]map[string]any)}
	if s == nil || s.ListType != "map" {
		return l, false
	}
	if v == (missing{}) {
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
		key, hasKey := keyOf(s, item)
		if !hasKey || l.items[key] != nil {
			return l, false
		}
		l.keys = append(l.keys, key)
		l.items[key] = item
	}
	return l, true
}

// keyOf returns the key of an item. It reports whether the item has a key. A key field that is missing has its default.
func keyOf(s *crd.Schema, item map[string]any) (string, bool) {
	key := make(map[string]any, len(s.ListMapKeys))
	for _, name := range s.ListMapKeys {
		part := memberOf(item, name)
		if p := propertyOf(s.Items, name); part == (missing{}) && p != nil && p.Default != nil {
			part = parseValue(p.Default)
		}
		switch part.(type) {
		case missing, nil, []any, map[string]any:
			return "", false
		}
		key[name] = part
	}
	return string(appendValue(nil, key)), true
}

// set sets the item of a key, or removes the item if v is missing. A new item is the last one. Each key is set once.
func (l *keyedList) set(key string, v any) {
	item, isThere := v.(map[string]any)
	switch {
	case !isThere:
		delete(l.items, key) // the key stays in keys
	case l.items[key] == nil:
		l.keys = append(slices.Clip(l.keys), key)
		fallthrough
	default:
		l.items[key] = item
	}
}

// item returns the item of a key, or missing.
func (l *keyedList) item(key string) any {
	if item := l.items[key]; item != nil {
		return item
	}
	return missing{}
}

// clone returns a copy that can be changed.
func (l *keyedList) clone() keyedList { return keyedList{l.keys, maps.Clone(l.items)} }

// list returns the list.
func (l *keyedList) list() []any {
	list := make([]any, 0, len(l.items))
	for _, key := range l.keys {
		if item := l.items[key]; item != nil {
			list = append(list, item)
		}
	}
	return list
}

// arrange brings the items into their original order, as far as the order has not changed since. original and returned
// are the orders at the time when the order was recorded, and current is the order before kept items were put back.
//
// For example, original is b a x, and returned is a b:
//
//	current a b    nobody has moved a and b, so the order is the original one: b a x
//	current a c b  c is new. It stays behind a: b a c x
//	current b a    an edit has moved b. The order stays, and x comes behind its original neighbor, which is a: b a x
func (l *keyedList) arrange(original, returned, current []string) {
	// The keys of base keep their order. Each other key comes behind the key that it follows in other or in the list.
	base, other := original, current
	if !slices.Equal(common(returned, current), common(current, returned)) {
		base, other = current, original
	}
	placed := make(map[string]bool, len(l.items))
	// followers holds, for each key, the keys that come directly behind it. The key "" stands for the beginning.
	followers := make(map[string][]string)
	var baseKeys []string
	for _, key := range base {
		if l.items[key] != nil && !placed[key] {
			placed[key] = true
			baseKeys = append(baseKeys, key)
		}
	}
	for _, keys := range [][]string{other, l.keys} {
		previous := ""
		for _, key := range keys {
			if l.items[key] == nil {
				continue
			}
			if !placed[key] {
				placed[key] = true
				followers[previous] = append(followers[previous], key)
			}
			previous = key
		}
	}
	order := make([]string, 0, len(l.items))
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
	l.keys = order
}

// common returns the keys that are in others too, in their order.
func common(keys, others []string) []string {
	has := make(map[string]bool, len(others))
	for _, key := range others {
		has[key] = true
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !has[key] })
}
