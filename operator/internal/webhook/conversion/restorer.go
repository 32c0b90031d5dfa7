package conversion

import (
	"maps"
	"slices"

	"github.com/yare-go/yare/crd"
)

// A restorer puts kept values back into the content of an object that has come home.
type restorer struct {
	check *schemaCheck
	// isPart is true for a part of an object: see schemaCheck.fits.
	isPart bool
	// applied holds the entries that changed something, and unfit those whose values do not fit the schema.
	applied, unfit []*entry
}

// A keptNode holds the entries of one place, and of the places below it.
type keptNode struct {
	entry, order *entry
	children     map[segment]*keptNode
}

// restore returns back with the values of entries, where back still has the value that an entry has recorded. For example,
// the entry {"path":["spec","schedule"],"home":"@hourly","back":"0 * * * *"} makes @hourly of "0 * * * *", and does nothing
// to "5 * * * *".
func (r *restorer) restore(entries []*entry, back map[string]any) map[string]any {
	root := &keptNode{}
	for _, e := range entries {
		root.add(e)
	}
	object, _ := r.restoreNode(root, r.check.root, back).(map[string]any)
	return object
}

// add adds an entry below n.
func (n *keptNode) add(e *entry) {
	for _, s := range e.path {
		if n.children == nil {
			n.children = make(map[segment]*keptNode)
		}
		child := n.children[s]
		if child == nil {
			child = &keptNode{}
			n.children[s] = child
		}
		n = child
	}
	switch {
	case e.hasOrder:
		n.order = e
	case n.entry == nil:
		n.entry = e
	}
}

// sortedSegments returns the segments of the children of n in the order of paths.
func (n *keptNode) sortedSegments() []segment {
	return slices.SortedFunc(maps.Keys(n.children), func(a, b segment) int {
		return (&entry{path: []segment{a}}).compare(&entry{path: []segment{b}})
	})
}

// restoreNode returns now with the values of n. s is the schema of now.
func (r *restorer) restoreNode(n *keptNode, s *crd.Schema, now any) any {
	if n.entry != nil {
		result, doesFit := r.merge(s, n.entry.home, n.entry.back, now)
		switch {
		case !doesFit:
			r.unfit = append(r.unfit, n.entry)
			return now
		case !areEqual(result, now):
			r.applied = append(r.applied, n.entry)
		}
		return result
	}
	applied := len(r.applied)
	result, doesFit := now, true
	switch now := now.(type) {
	case map[string]any:
		object := maps.Clone(now)
		for _, segment := range n.sortedSegments() {
			if segment.isKey {
				continue
			}
			name, before := segment.text, len(r.applied)
			value := r.restoreNode(n.children[segment], r.check.member(s, name), memberOf(now, name))
			if value == any(missing{}) && !r.canRemove(s, now, name) {
				r.revert(before)
				continue
			}
			setMember(object, name, value)
		}
		result, doesFit = object, s == nil || r.isWithin(len(now), len(object), s.MinProperties, s.MaxProperties)
	case []any:
		list, isKeyed := keyedListOf(s, now)
		if !isKeyed {
			return now
		}
		changed := list.clone()
		for _, segment := range n.sortedSegments() {
			if segment.isKey {
				item := r.restoreNode(n.children[segment], s.Items, list.item(segment.text))
				if object, isObject := item.(map[string]any); isObject && !hasKey(s, object, segment.text) {
					continue // a forged item
				}
				changed.set(segment.text, item)
			}
		}
		if n.order != nil {
			changed.arrange(orderOf(n.order.home), orderOf(n.order.back), list.keys)
			r.applied = append(r.applied, n.order)
		}
		result, doesFit = changed.list(), r.isWithin(len(list.items), len(changed.items), s.MinItems, s.MaxItems)
	}
	if !doesFit {
		r.revert(applied)
		return now
	}
	return result
}

// revert makes unfit what was applied after the first n entries.
func (r *restorer) revert(n int) {
	for _, e := range r.applied[n:] {
		if !e.hasOrder {
			r.unfit = append(r.unfit, e)
		}
	}
	r.applied = r.applied[:n]
}

// canRemove reports whether an object fits s without a member as well as with it.
func (r *restorer) canRemove(s *crd.Schema, object map[string]any, name string) bool {
	_, isThere := object[name]
	return !isThere || s == nil || r.isPart || !slices.Contains(s.Required, name)
}

// isWithin reports whether the number of elements after a change is within the bounds, unless the number before was not.
func (r *restorer) isWithin(before, after int, least, most *int64) bool {
	return isWithin(after, least, most, r.isPart) || !isWithin(before, least, most, r.isPart)
}

func hasKey(s *crd.Schema, item map[string]any, key string) bool {
	has, isThere := keyOf(s, item)
	return isThere && has == key
}

// merge returns home if now is back. If now is another object or list with keys, merge returns now with the members or
// items in which home and back differ, and in which now is as back. It reports false if a value of home does not fit.
//
// For example, home is {"x":1,"y":2}, and back is missing. If now is missing too, the result is home. If now is {"x":7},
// the result is {"x":7,"y":2}.
func (r *restorer) merge(s *crd.Schema, home, back, now any) (any, bool) {
	switch {
	case areEqual(home, back):
		return now, true
	case areEqual(now, back):
		return home, home == (missing{}) || r.check.fits(s, home, r.isPart)
	}
	homeObject, isHomeObject := objectOrMissing(home)
	backObject, isBackObject := objectOrMissing(back)
	nowObject, isNowObject := now.(map[string]any)
	if isHomeObject && isBackObject && isNowObject {
		return r.mergeObjects(s, homeObject, backObject, nowObject, nil)
	}
	if _, isNowList := now.([]any); !isNowList {
		return now, true
	}
	homeList, isHomeKeyed := keyedListOf(s, home)
	backList, isBackKeyed := keyedListOf(s, back)
	nowList, isNowKeyed := keyedListOf(s, now)
	if !isHomeKeyed || !isBackKeyed || !isNowKeyed {
		return now, true
	}
	changed := nowList.clone()
	for _, key := range slices.Concat(homeList.keys, backList.keys) {
		item, doesFit := nowList.item(key), true
		switch homeItem, backItem := homeList.item(key), backList.item(key); {
		case areEqual(item, backItem):
			item, doesFit = homeItem, homeItem == (missing{}) || r.check.fits(s.Items, homeItem, r.isPart)
		case item != any(missing{}):
			item, doesFit = r.mergeObjects(s.Items, homeList.items[key], backList.items[key], nowList.items[key], s.ListMapKeys)
		}
		if !doesFit {
			return now, false
		}
		changed.set(key, item)
	}
	changed.arrange(homeList.keys, backList.keys, nowList.keys)
	return changed.list(), r.isWithin(len(nowList.items), len(changed.items), s.MinItems, s.MaxItems)
}

// mergeObjects merges the members of objects as merge does, but for the members keys.
func (r *restorer) mergeObjects(s *crd.Schema, home, back, now map[string]any, keys []string) (any, bool) {
	object := maps.Clone(now)
	for _, name := range sortedNames(home, back) {
		if slices.Contains(keys, name) {
			continue
		}
		value, doesFit := r.merge(r.check.member(s, name), memberOf(home, name), memberOf(back, name), memberOf(now, name))
		if !doesFit || value == any(missing{}) && !r.canRemove(s, now, name) {
			return now, false
		}
		setMember(object, name, value)
	}
	return object, s == nil || r.isWithin(len(now), len(object), s.MinProperties, s.MaxProperties)
}
