package noop

import (
	"reflect"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ownsExactly reports whether owned, the field set of one manager, covers exactly the fields
// of wanted, and each of these fields has the same value in live. All is the field sets of
// all managers. If so, an apply of wanted by that manager changes nothing.
//
// The trees are walked together. The walk needs no schema, because the field set shows how
// the server treats each list: as a whole, by keys, or as a set. Whatever the walk does not
// understand makes the result false.
//
// In the notation of managedFields (FieldsV1), "f:NAME" is a member of an object, "k:{KEYS}"
// or "v:VALUE" is an item of a list, and "." is the place itself. A place without anything
// below it is a leaf: it is owned as a whole, or it was empty when it was applied. In the
// second case its present parts came from other managers, so their field sets count too.
func ownsExactly(owned map[string]any, all []map[string]any, wanted, live any) bool {
	if isLeaf(owned) {
		return reflect.DeepEqual(wanted, live) && (isEmpty(wanted) || !slices.ContainsFunc(all, hasParts))
	}
	switch w := wanted.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		return ok && ownsMembers(owned, all, w, l)
	case []any:
		l, ok := live.([]any)
		return ok && ownsItems(owned, all, w, l)
	default:
		return false
	}
}

// isLeaf reports whether the place is owned as a whole.
func isLeaf(owned map[string]any) bool { return len(owned) == 0 }

// hasParts reports whether parts of the place are owned, each by itself.
func hasParts(owned map[string]any) bool {
	_, itself := owned["."]
	return len(owned) > 1 || len(owned) == 1 && !itself
}

// isEmpty reports whether v has no parts.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return true
	}
}

// below returns the parts of the field sets that are under name.
func below(sets []map[string]any, name string) []map[string]any {
	var parts []map[string]any
	for _, set := range sets {
		if part, ok := set[name].(map[string]any); ok {
			parts = append(parts, part)
		}
	}
	return parts
}

func ownsMembers(owned map[string]any, all []map[string]any, wanted, live map[string]any) bool {
	found := 0
	for name, part := range owned {
		if name == "." {
			continue
		}
		member, ok := strings.CutPrefix(name, "f:")
		if !ok {
			return false
		}
		w, inWanted := wanted[member]
		l, inLive := live[member]
		set, isSet := part.(map[string]any)
		if !inWanted || !inLive || !isSet || !ownsExactly(set, below(all, name), w, l) {
			return false
		}
		found++
	}
	return found == len(wanted)
}

func ownsItems(owned map[string]any, all []map[string]any, wanted, live []any) bool {
	found := 0
	// positions holds, for each wanted item, its index in live. An apply puts the items that
	// it names in its own order.
	positions := make([]int, len(wanted))
	for name, part := range owned {
		if name == "." {
			continue
		}
		set, isSet := part.(map[string]any)
		if !isSet {
			return false
		}
		switch {
		case strings.HasPrefix(name, "k:"):
			var keys map[string]any
			if utiljson.Unmarshal([]byte(name[2:]), &keys) != nil {
				return false
			}
			w, l := indexOfKeys(wanted, keys, true), indexOfKeys(live, keys, false)
			if w < 0 || l < 0 || !ownsExactly(set, below(all, name), wanted[w], live[l]) {
				return false
			}
			positions[w] = l
		case strings.HasPrefix(name, "v:"):
			var v any
			if utiljson.Unmarshal([]byte(name[2:]), &v) != nil {
				return false
			}
			w, l := indexOfValue(wanted, v), indexOfValue(live, v)
			if w < 0 || l < 0 {
				return false
			}
			positions[w] = l
		default:
			return false
		}
		found++
	}
	return found == len(wanted) && slices.IsSorted(positions)
}

// indexOfKeys returns the index of the only item with these keys, or -1 if there is none or
// more than one. With defaulted, an item may leave keys out: the server sets them.
func indexOfKeys(items []any, keys map[string]any, defaulted bool) int {
	match := -1
	for i := range items {
		item, ok := items[i].(map[string]any)
		if !ok {
			return -1
		}
		same := true
		for k, v := range keys {
			value, set := item[k]
			same = same && (set && reflect.DeepEqual(value, v) || !set && defaulted)
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

func indexOfValue(items []any, v any) int {
	return slices.IndexFunc(items, func(item any) bool { return reflect.DeepEqual(item, v) })
}
