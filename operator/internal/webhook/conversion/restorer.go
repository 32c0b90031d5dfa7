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
	object, _ := r.restoreNode(root, r.check.root, back, 0, 0).(map[string]any)
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
	var names, keys []string // a further type to sort makes programs larger
	for s := range n.children {
		if s.isKey {
			keys = append(keys, s.text)
		} else {
			names = append(names, s.text)
		}
	}
	slices.Sort(names)
	slices.Sort(keys)
	all := make([]segment, 0, len(n.children))
	for _, name := range names {
		all = append(all, segment{name, false})
	}
	for _, key := range keys {
		all = append(all, segment{key, true})
	}
	return all
}

// restoreNode returns now with the values of n. s is the schema of now, and depth the number of segments of its path. made is
// the number of segments of the shortest beginning of this path where the object has nothing, or 0 if it has now or at least
// the object around now.
func (r *restorer) restoreNode(n *keptNode, s *crd.Schema, now any, depth, made int) any {
	if n.entry != nil {
		return r.restoreEntry(n.entry, s, now, made)
	}
	if now == any(missing{}) {
		return r.restoreAbsent(n, s, depth, made)
	}
	applied := len(r.applied)
	result, doesFit := now, true
	switch now := now.(type) {
	case map[string]any:
		object := r.restoreMembers(n, s, now, depth, 0)
		result, doesFit = object, s == nil || r.isWithin(len(now), len(object), s.MinProperties, s.MaxProperties)
	case []any:
		list, isKeyed := keyedListOf(s, now)
		if !isKeyed {
			return now
		}
		changed := r.restoreItems(n, s, list, depth, 0)
		result, doesFit = changed.list(), r.isWithin(len(list.items), len(changed.items), s.MinItems, s.MaxItems)
	}
	if !doesFit {
		r.revertEntries(applied)
		return now
	}
	return result
}

// restoreEntry returns now with the value of an entry.
func (r *restorer) restoreEntry(e *entry, s *crd.Schema, now any, made int) any {
	if made > 0 && (e.absentFrom == 0 || e.absentFrom > made) {
		return now // an edit has removed the object around the value
	}
	result, doesFit := r.mergeValue(s, e.home, e.back, now)
	switch {
	case !doesFit:
		r.unfit = append(r.unfit, e)
		return now
	case !areEqual(result, now):
		r.applied = append(r.applied, e)
	}
	return result
}

// restoreAbsent returns a new object or list with the values of n, where the object has nothing. It returns missing if no
// value goes there.
func (r *restorer) restoreAbsent(n *keptNode, s *crd.Schema, depth, made int) any {
	if made == 0 {
		made = depth
	}
	applied := len(r.applied)
	var result any
	isList := n.order != nil
	for child := range n.children {
		isList = isList || child.isKey
	}
	if isList {
		list, isKeyed := keyedListOf(s, []any{})
		if !isKeyed {
			return missing{}
		}
		changed := r.restoreItems(n, s, list, depth, made)
		result = changed.list()
	} else {
		result = r.restoreMembers(n, s, map[string]any{}, depth, made)
	}
	if len(r.applied) == applied {
		return missing{}
	}
	if !r.check.fits(s, result, r.isPart) {
		r.revertEntries(applied)
		return missing{}
	}
	return result
}

// restoreMembers returns an object with the values of the children of n.
func (r *restorer) restoreMembers(n *keptNode, s *crd.Schema, now map[string]any, depth, made int) map[string]any {
	object := maps.Clone(now)
	for _, segment := range n.sortedSegments() {
		if segment.isKey {
			continue
		}
		name, before := segment.text, len(r.applied)
		value := r.restoreNode(n.children[segment], r.check.member(s, name), memberOf(now, name), depth+1, made)
		if value == any(missing{}) && !r.canRemove(s, now, name) {
			r.revertEntries(before)
			continue
		}
		setMember(object, name, value)
	}
	return object
}

// restoreItems returns a list with the values of the children of n.
func (r *restorer) restoreItems(n *keptNode, s *crd.Schema, list keyedList, depth, made int) keyedList {
	changed := list.clone()
	for _, segment := range n.sortedSegments() {
		if !segment.isKey {
			continue
		}
		child, before := n.children[segment], len(r.applied)
		var item any
		if now := list.item(segment.text); child.entry == nil && now == any(missing{}) {
			item = r.restoreItem(child, s, segment.text, depth+1, made)
		} else {
			item = r.restoreNode(child, s.Items, now, depth+1, made)
		}
		if object, isObject := item.(map[string]any); isObject && !hasKey(s, object, segment.text) {
			r.applied = r.applied[:before]
			continue // a forged item
		}
		changed.set(segment.text, item)
	}
	if n.order != nil {
		changed.arrange(orderOf(n.order.home), orderOf(n.order.back), list.keys)
	}
	return changed
}

// restoreItem returns a new item with a key and the values of n. It returns missing if no value goes there.
func (r *restorer) restoreItem(n *keptNode, s *crd.Schema, key string, depth, made int) any {
	if made == 0 {
		made = depth
	}
	applied := len(r.applied)
	fields, _ := parseValue([]byte(key)).(map[string]any)
	item := r.restoreMembers(n, s.Items, fields, depth, made)
	if len(r.applied) == applied {
		return missing{}
	}
	if !r.check.fits(s.Items, item, r.isPart) {
		r.revertEntries(applied)
		return missing{}
	}
	return item
}

// revertEntries makes unfit what was applied after the first n entries.
func (r *restorer) revertEntries(n int) {
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

// mergeValue returns home if now is back. If now is another object or list with keys, mergeValue returns now with the members or
// items in which home and back differ, and in which now is as back. It reports false if a value of home does not fit.
//
// For example, home is {"x":1,"y":2}, and back is missing. If now is missing too, the result is home. If now is {"x":7},
// the result is {"x":7,"y":2}.
func (r *restorer) mergeValue(s *crd.Schema, home, back, now any) (any, bool) {
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

// mergeObjects merges the members of objects as mergeValue does, but for the members keys.
func (r *restorer) mergeObjects(s *crd.Schema, home, back, now map[string]any, keys []string) (any, bool) {
	object := maps.Clone(now)
	for _, name := range sortedNames(home, back) {
		if slices.Contains(keys, name) {
			continue
		}
		value, doesFit := r.mergeValue(r.check.member(s, name), memberOf(home, name), memberOf(back, name), memberOf(now, name))
		if !doesFit || value == any(missing{}) && !r.canRemove(s, now, name) {
			return now, false
		}
		setMember(object, name, value)
	}
	return object, s == nil || r.isWithin(len(now), len(object), s.MinProperties, s.MaxProperties)
}
