package noop

import (
	"reflect"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/jsonscan/fieldset"
)

// ownsExactly reports whether owned, the field set of one manager, covers exactly the fields
// of wanted, and each of these fields has the same value in current. all holds the field sets of
// all managers. If so, an apply of wanted by that manager changes nothing.
//
// The trees are walked together. The walk needs no schema, because the field set shows how
// the server treats each list: as a whole, by keys, or as a set. The result is false for everything that
// the walk does not understand.
//
// The sets have the notation of managedFields: see package fieldset. A leaf is owned as a whole, or it was empty when
// it was applied. In the second case its present parts came from other managers, so their field sets count too.
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
		return reflect.DeepEqual(wanted, current) &&
			(isEmpty(wanted) || !slices.ContainsFunc(all, fieldset.HasParts[any]))
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
		item, isItem := fieldset.ParseItem(name)
		if !isItem {
			return false
		}
		w, c := item.IndexIn(wanted, true), item.IndexIn(current, false)
		// An item that leaves a key out can be taken for two items, but is only one of them.
		if w < 0 || c < 0 || positions[w] >= 0 ||
			item.Keys != nil && !ownsExactly(set, below(all, name), wanted[w], current[c]) {
			return false
		}
		positions[w] = c
		found++
	}
	return found == len(wanted) && slices.IsSorted(positions)
}
