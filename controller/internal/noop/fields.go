package noop

import (
	"reflect"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ownsExactly reports whether owned, the field set of one manager, covers exactly the fields
// of wanted, and each of these fields has the same value in current. all holds the field sets of
// all managers. If so, an apply of wanted by that manager changes nothing.
//
// The trees are walked together. The walk needs no schema, because the field set shows how
// the server treats each list: as a whole, by keys, or as a set. The result is false for everything that
// the walk does not understand.
//
// In the notation of managedFields (FieldsV1), "f:NAME" is a member of an object, "k:{KEYS}"
// or "v:VALUE" is an item of a list, and "." is the place itself. A place without anything
// below it is a leaf: it is owned as a whole, or it was empty when it was applied. In the
// second case its present parts came from other managers, so their field sets count too.
//
// An example. A manager has applied two replicas and one container, and owns
//
//	{"f:spec": {
//		"f:replicas": {},
//		"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}}}}}
//
// The current object has replicas 2, and containers [{name: log, image: log:1}, {name: web, image: web:1}].
// An apply then compares as follows:
//
//	wanted spec                                            is owned exactly
//	replicas: 2, containers: [{name: web, image: web:1}]   yes: the container log is of another manager
//	replicas: 3, containers: [{name: web, image: web:1}]   no: the current value is 2
//	containers: [{name: web, image: web:1}]                no: the apply would remove replicas
//	replicas: 2, containers: [{name: web, image: web:1},
//	  {name: log, image: log:1}]                           no: the apply would add log to the field set
//
// The walk goes from "f:spec" to "f:containers", which is a list with keys. The key {"name":"web"} leads to
// item 0 of the wanted list and to item 1 of the current list, and these two items are compared.
func ownsExactly(owned map[string]any, all []map[string]any, wanted, current any) bool {
	if isLeaf(owned) {
		return reflect.DeepEqual(wanted, current) && (isEmpty(wanted) || !slices.ContainsFunc(all, hasParts))
	}
	switch w := wanted.(type) {
	case map[string]any:
		c, ok := current.(map[string]any)
		return ok && ownsMembers(owned, all, w, c)
	case []any:
		c, ok := current.([]any)
		return ok && ownsItems(owned, all, w, c)
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

func ownsMembers(owned map[string]any, all []map[string]any, wanted, current map[string]any) bool {
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
		c, inCurrent := current[member]
		set, isSet := part.(map[string]any)
		if !inWanted || !inCurrent || !isSet || !ownsExactly(set, below(all, name), w, c) {
			return false
		}
		found++
	}
	return found == len(wanted)
}

func ownsItems(owned map[string]any, all []map[string]any, wanted, current []any) bool {
	found := 0
	// positions holds, for each wanted item, its index in current, or -1 until it is found. An
	// apply puts the items that it names in its own order.
	positions := slices.Repeat([]int{-1}, len(wanted))
	for name, part := range owned {
		if name == "." {
			continue
		}
		set, isSet := part.(map[string]any)
		if !isSet {
			return false
		}
		w, c := -1, -1
		if text, ok := strings.CutPrefix(name, "k:"); ok {
			var keys map[string]any
			if utiljson.Unmarshal([]byte(text), &keys) != nil {
				return false
			}
			if w, c = indexOfKeys(wanted, keys, true), indexOfKeys(current, keys, false); w < 0 || c < 0 ||
				!ownsExactly(set, below(all, name), wanted[w], current[c]) {
				return false
			}
		} else if text, ok := strings.CutPrefix(name, "v:"); ok {
			var v any
			if utiljson.Unmarshal([]byte(text), &v) != nil {
				return false
			}
			w, c = indexOfValue(wanted, v), indexOfValue(current, v)
		}
		// An item that leaves a key out can be taken for two items, but is only one of them.
		if w < 0 || c < 0 || positions[w] >= 0 {
			return false
		}
		positions[w] = c
		found++
	}
	return found == len(wanted) && slices.IsSorted(positions)
}

// indexOfKeys returns the index of the only item with these keys, or -1 if there is none or
// more than one. With isDefaulted, an item may leave keys out, because the server sets them. An
// item that has all of them precedes such items. An example is a port {port: 80}, which has the keys
// {"port": 80, "protocol": "TCP"}: TCP is the default.
func indexOfKeys(items []any, keys map[string]any, isDefaulted bool) int {
	exact, partial, exacts, partials := -1, -1, 0, 0
	for i := range items {
		item, ok := items[i].(map[string]any)
		if !ok {
			return -1
		}
		same, missing := true, false
		for k, v := range keys {
			value, set := item[k]
			same = same && (!set || reflect.DeepEqual(value, v))
			missing = missing || !set
		}
		switch {
		case same && !missing:
			exact, exacts = i, exacts+1
		case same && isDefaulted:
			partial, partials = i, partials+1
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

func indexOfValue(items []any, v any) int {
	return slices.IndexFunc(items, func(item any) bool { return reflect.DeepEqual(item, v) })
}
