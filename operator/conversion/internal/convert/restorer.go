package convert

import (
	"maps"
	"slices"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// restorer puts kept values back into the content of an object, which the functions have returned to its original
// version.
type restorer struct {
	check *schemaCheck
	// isPart is true for a part of an object: see schemaCheck.fits.
	isPart bool
	// applied holds the entries that changed something, and rejected those whose values do not fit the schema.
	applied, rejected []*entry
}

// keptNode holds the entries of one place, and of the places below it.
type keptNode struct {
	entry, order *entry
	children     map[segment]*keptNode
}

// restore returns content with the values of entries, where content still has the value that an entry has recorded. For
// example, the entry {"original":"@hourly","path":["spec","schedule"],"returned":"0 * * * *"} makes @hourly of
// "0 * * * *", and does nothing to "5 * * * *".
func (r *restorer) restore(entries []*entry, content map[string]any) map[string]any {
	root := &keptNode{}
	for _, e := range entries {
		root.add(e)
	}
	object, _ := r.restoreNode(root, r.check.root, content, 0, 0).(map[string]any)
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
	return slices.SortedFunc(maps.Keys(n.children), segment.compare)
}

// restoreNode returns current with the values of n. s is the schema of current, and depth the number of segments of its
// path. missingAbove is 0 if the object has what is around current. Otherwise missingAbove is the number of segments of
// the shortest beginning of the path where the object has nothing. For example, the path is spec.limits.cpu, so depth
// is 3. missingAbove is 2 if spec has no limits. It is 0 if limits lacks cpu alone, where [entry.absentDepth] is 3.
func (r *restorer) restoreNode(n *keptNode, s *crd.Schema, current any, depth, missingAbove int) any {
	if n.entry != nil {
		return r.restoreEntry(n.entry, s, current, missingAbove)
	}
	if current == any(jsontree.Missing{}) {
		return r.restoreAbsent(n, s, depth, missingAbove)
	}
	applied := len(r.applied)
	result, doesFit := current, true
	switch current := current.(type) {
	case map[string]any:
		object := r.restoreMembers(n, s, current, depth, 0)
		result, doesFit = object, s == nil || r.keepsBounds(len(current), len(object), s.MinProperties, s.MaxProperties)
	case []any:
		list, isKeyed := jsontree.KeyedListOf(s, current)
		if !isKeyed {
			return current
		}
		changed := r.restoreItems(n, s, list, depth, 0)
		result, doesFit = changed.List(), r.keepsBounds(len(list.Items), len(changed.Items), s.MinItems, s.MaxItems)
	}
	if !doesFit {
		r.revertEntries(applied)
		return current
	}
	return result
}

// restoreEntry returns current with the value of an entry.
func (r *restorer) restoreEntry(e *entry, s *crd.Schema, current any, missingAbove int) any {
	if missingAbove > 0 && (e.absentDepth == 0 || e.absentDepth > missingAbove) {
		return current // an edit has removed the object around the value
	}
	result, doesFit := r.mergeValue(s, e.original, e.returned, current)
	switch {
	case !doesFit:
		r.rejected = append(r.rejected, e)
		return current
	case !jsontree.Equal(result, current):
		r.applied = append(r.applied, e)
	}
	return result
}

// restoreAbsent returns a new object or list with the values of n, where the object has nothing. It returns missing if
// no value goes there.
func (r *restorer) restoreAbsent(n *keptNode, s *crd.Schema, depth, missingAbove int) any {
	if missingAbove == 0 {
		missingAbove = depth
	}
	applied := len(r.applied)
	var result any
	isList := n.order != nil
	for child := range n.children {
		isList = isList || child.isKey
	}
	if isList {
		list, isKeyed := jsontree.KeyedListOf(s, []any{})
		if !isKeyed {
			return jsontree.Missing{}
		}
		changed := r.restoreItems(n, s, list, depth, missingAbove)
		result = changed.List()
	} else {
		result = r.restoreMembers(n, s, map[string]any{}, depth, missingAbove)
	}
	if len(r.applied) == applied {
		return jsontree.Missing{}
	}
	if !r.check.fits(s, result, r.isPart) {
		r.revertEntries(applied)
		return jsontree.Missing{}
	}
	return result
}

// restoreMembers returns an object with the values of the children of n.
func (r *restorer) restoreMembers(
	n *keptNode, s *crd.Schema, current map[string]any, depth, missingAbove int,
) map[string]any {
	object := maps.Clone(current)
	for _, segment := range n.sortedSegments() {
		if segment.isKey {
			continue
		}
		name, before := segment.text, len(r.applied)
		value := r.restoreNode(
			n.children[segment], r.check.member(s, name), jsontree.Member(current, name), depth+1, missingAbove)
		if value == any(jsontree.Missing{}) && !r.canRemove(s, current, name) {
			r.revertEntries(before)
			continue
		}
		jsontree.SetMember(object, name, value)
	}
	return object
}

// restoreItems returns a list with the values of the children of n.
func (r *restorer) restoreItems(
	n *keptNode, s *crd.Schema, list jsontree.KeyedList, depth, missingAbove int,
) jsontree.KeyedList {
	changed := list.Clone()
	for _, segment := range n.sortedSegments() {
		if !segment.isKey {
			continue
		}
		child, before := n.children[segment], len(r.applied)
		var item any
		if current := list.Item(segment.text); child.entry == nil && current == any(jsontree.Missing{}) {
			item = r.restoreItem(child, s, segment.text, depth+1, missingAbove)
		} else {
			item = r.restoreNode(child, s.Items, current, depth+1, missingAbove)
		}
		if object, isObject := item.(map[string]any); isObject && !hasKey(s, object, segment.text) {
			r.applied = r.applied[:before]
			continue // the annotation names another key than its item has
		}
		changed.Set(segment.text, item)
	}
	if n.order != nil {
		changed.Arrange(orderOf(n.order.original), orderOf(n.order.returned), list.Keys)
	}
	return changed
}

// restoreItem returns a new item with a key and the values of n. It returns missing if no value goes there.
func (r *restorer) restoreItem(n *keptNode, s *crd.Schema, key string, depth, missingAbove int) any {
	if missingAbove == 0 {
		missingAbove = depth
	}
	applied := len(r.applied)
	fields, _ := jsontree.Parse([]byte(key)).(map[string]any)
	item := r.restoreMembers(n, s.Items, fields, depth, missingAbove)
	if len(r.applied) == applied {
		return jsontree.Missing{}
	}
	if !r.check.fits(s.Items, item, r.isPart) {
		r.revertEntries(applied)
		return jsontree.Missing{}
	}
	return item
}

// revertEntries rejects what was applied after the first n entries.
func (r *restorer) revertEntries(n int) {
	for _, e := range r.applied[n:] {
		if !e.hasOrder {
			r.rejected = append(r.rejected, e)
		}
	}
	r.applied = r.applied[:n]
}

// canRemove reports whether an object fits s without a member as well as with it.
func (r *restorer) canRemove(s *crd.Schema, object map[string]any, name string) bool {
	_, isThere := object[name]
	return !isThere || s == nil || r.isPart || !slices.Contains(s.Required, name)
}

// keepsBounds reports whether the number of elements after a change is within the bounds, or the number before was not.
func (r *restorer) keepsBounds(before, after int, least, most *int64) bool {
	return isWithin(after, least, most, r.isPart) || !isWithin(before, least, most, r.isPart)
}

// hasKey reports whether an item has this key.
func hasKey(s *crd.Schema, item map[string]any, key string) bool {
	own, isKnown := jsontree.KeyOf(s, item)
	return isKnown && own == key
}

// mergeValue returns original if current is as returned. If current is another object or list with keys, mergeValue
// returns current with the members or items of original in which original and returned differ, and in which current is
// as returned. It reports false if a value of original does not fit.
//
// For example, original is {"x":1,"y":2}, and returned is missing. If current is missing too, the result is original.
// If current is {"x":7}, the result is {"x":7,"y":2}.
func (r *restorer) mergeValue(s *crd.Schema, original, returned, current any) (any, bool) {
	switch {
	case jsontree.Equal(original, returned):
		return current, true
	case jsontree.Equal(current, returned):
		return original, original == (jsontree.Missing{}) || r.check.fits(s, original, r.isPart)
	}
	originalObject, isOriginalObject := jsontree.ObjectOrMissing(original)
	returnedObject, isReturnedObject := jsontree.ObjectOrMissing(returned)
	currentObject, isCurrentObject := current.(map[string]any)
	if isOriginalObject && isReturnedObject && isCurrentObject {
		return r.mergeObjects(s, originalObject, returnedObject, currentObject, nil)
	}
	if _, isCurrentList := current.([]any); !isCurrentList {
		return current, true
	}
	originalList, isOriginalKeyed := jsontree.KeyedListOf(s, original)
	returnedList, isReturnedKeyed := jsontree.KeyedListOf(s, returned)
	currentList, isCurrentKeyed := jsontree.KeyedListOf(s, current)
	if !isOriginalKeyed || !isReturnedKeyed || !isCurrentKeyed {
		return current, true
	}
	changed := currentList.Clone()
	for _, key := range slices.Concat(originalList.Keys, returnedList.Keys) {
		item, doesFit := currentList.Item(key), true
		switch originalItem, returnedItem := originalList.Item(key), returnedList.Item(key); {
		case jsontree.Equal(item, returnedItem):
			item, doesFit = originalItem, originalItem == (jsontree.Missing{}) || r.check.fits(s.Items, originalItem, r.isPart)
		case item != any(jsontree.Missing{}):
			item, doesFit = r.mergeObjects(s.Items, originalList.Items[key], returnedList.Items[key],
				currentList.Items[key], s.ListMapKeys)
		}
		if !doesFit {
			return current, false
		}
		changed.Set(key, item)
	}
	changed.Arrange(originalList.Keys, returnedList.Keys, currentList.Keys)
	return changed.List(), r.keepsBounds(len(currentList.Items), len(changed.Items), s.MinItems, s.MaxItems)
}

// mergeObjects merges the members of objects as mergeValue does, but for the members keys.
func (r *restorer) mergeObjects(s *crd.Schema, original, returned, current map[string]any, keys []string) (any, bool) {
	object := maps.Clone(current)
	for _, name := range jsontree.SortedNames(original, returned) {
		if slices.Contains(keys, name) {
			continue
		}
		value, doesFit := r.mergeValue(r.check.member(s, name), jsontree.Member(original, name),
			jsontree.Member(returned, name), jsontree.Member(current, name))
		if !doesFit || value == any(jsontree.Missing{}) && !r.canRemove(s, current, name) {
			return current, false
		}
		jsontree.SetMember(object, name, value)
	}
	return object, s == nil || r.keepsBounds(len(current), len(object), s.MinProperties, s.MaxProperties)
}
