package cache

import (
	"reflect"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ownsExactly walks the three trees together: what a manager owns, in the notation of
// managedFields (FieldsV1), what it wants, and what is live. It needs no schema, because
// the owned tree tells how the server sees each list: as a whole, by keys, or as a set.
// Whatever it does not understand is a no.
//
// In that notation a member of an object is f:NAME, an item of a list is k:{KEYS} or
// v:VALUE, the place itself is ".", and a place without anything below it is owned whole.
//
// Or it was empty when it was applied: then what is in it now came from others, who own
// parts of it. So what others own is looked at too.
func ownsExactly(owned map[string]any, others []map[string]any, want, live any) bool {
	if leaf(owned) {
		return reflect.DeepEqual(want, live) && (empty(want) || !slices.ContainsFunc(others, divided))
	}
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		return ok && ownsMembers(owned, others, w, l)
	case []any:
		l, ok := live.([]any)
		return ok && ownsItems(owned, others, w, l)
	default:
		return false
	}
}

// leaf tells a place that is owned as a whole.
func leaf(owned map[string]any) bool { return len(owned) == 0 }

// divided tells a place whose parts are owned each by itself.
func divided(owned map[string]any) bool {
	_, itself := owned["."]
	return len(owned) > 1 || len(owned) == 1 && !itself
}

// empty tells what has no parts.
func empty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return true
	}
}

// below are what others own under one name of a place.
func below(others []map[string]any, name string) []map[string]any {
	var trees []map[string]any
	for _, o := range others {
		if tree, ok := o[name].(map[string]any); ok {
			trees = append(trees, tree)
		}
	}
	return trees
}

func ownsMembers(owned map[string]any, others []map[string]any, want, live map[string]any) bool {
	found := 0
	for name, part := range owned {
		if name == "." {
			continue
		}
		member, ok := strings.CutPrefix(name, "f:")
		if !ok {
			return false
		}
		w, wanted := want[member]
		l, there := live[member]
		tree, isTree := part.(map[string]any)
		if !wanted || !there || !isTree || !ownsExactly(tree, below(others, name), w, l) {
			return false
		}
		found++
	}
	return found == len(want)
}

func ownsItems(owned map[string]any, others []map[string]any, want, live []any) bool {
	found := 0
	// An apply puts the items that it names in its own order.
	places := make([]int, len(want))
	for name, part := range owned {
		if name == "." {
			continue
		}
		tree, isTree := part.(map[string]any)
		if !isTree {
			return false
		}
		switch {
		case strings.HasPrefix(name, "k:"):
			var keys map[string]any
			if utiljson.Unmarshal([]byte(name[2:]), &keys) != nil {
				return false
			}
			w, l := itemWith(want, keys, true), itemWith(live, keys, false)
			if w < 0 || l < 0 || !ownsExactly(tree, below(others, name), want[w], live[l]) {
				return false
			}
			places[w] = l
		case strings.HasPrefix(name, "v:"):
			var v any
			if utiljson.Unmarshal([]byte(name[2:]), &v) != nil {
				return false
			}
			w, l := placeOf(want, v), placeOf(live, v)
			if w < 0 || l < 0 {
				return false
			}
			places[w] = l
		default:
			return false
		}
		found++
	}
	return found == len(want) && slices.IsSorted(places)
}

// itemWith finds the one item with these keys. In what is wanted, keys may be left to the
// server's defaults. It is -1 if there is none, or more than one.
func itemWith(items []any, keys map[string]any, defaults bool) int {
	match := -1
	for i := range items {
		item, ok := items[i].(map[string]any)
		if !ok {
			return -1
		}
		same := true
		for k, v := range keys {
			have, there := item[k]
			same = same && (there && reflect.DeepEqual(have, v) || !there && defaults)
		}
		if same && match >= 0 {
			return -1
		}
		if same {
			match = i
		}
	}
	return match
}

func placeOf(items []any, v any) int {
	return slices.IndexFunc(items, func(item any) bool { return reflect.DeepEqual(item, v) })
}
