package convert

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// segment is a part of a path: the name of a member, or the key of an item of a list.
type segment struct {
	// text is the name or, for a key, its JSON, such as {"name":"web"}.
	text  string
	isKey bool
}

// compare orders segments by their texts. Names come before keys.
func (s segment) compare(other segment) int {
	return cmp.Or(boolOrder(s.isKey)-boolOrder(other.isKey), strings.Compare(s.text, other.text))
}

// entry is a kept value: at path, the object had the value original in its original version, where the functions return
// the value returned. Each of the two can be missing. For example, original is "@hourly", and returned is "0 * * * *".
//
// An entry with an order keeps the order of a list with keys. original and returned are then lists of keys.
type entry struct {
	path               []segment
	original, returned any
	hasOrder           bool
	// absentDepth is the number of segments of the shortest beginning of path where the functions return nothing. For
	// example, if path is spec.limits.cpu:
	//
	//	the functions return spec.limits.cpu          0
	//	they return spec.limits, which has no cpu     3
	//	they return spec, which has no limits         2
	absentDepth int
	// isLeftover is true in the original version for a value that was not put back, because the value does not fit the
	// schema.
	isLeftover bool
}

// value returns the JSON of e, such as {"from":2,"original":5,"path":["spec","size"]}.
func (e *entry) value() map[string]any {
	path := make([]any, len(e.path))
	for i, s := range e.path {
		path[i] = s.text
		if s.isKey {
			path[i] = jsontree.Parse([]byte(s.text))
		}
	}
	v := map[string]any{"path": path}
	if e.hasOrder {
		v["order"] = true
	}
	if e.absentDepth > 0 {
		v["from"] = jsontree.Number(strconv.Itoa(e.absentDepth))
	}
	if e.isLeftover {
		v["left"] = true
	}
	jsontree.SetMember(v, "original", e.original)
	jsontree.SetMember(v, "returned", e.returned)
	return v
}

// annotation returns the key and the value of the annotation of e, for the object in another version. The hash in the
// key follows from the place alone.
func (e *entry) annotation(version, to string) (key, value string) {
	v := e.value()
	v["to"] = to
	place := jsontree.Append([]byte(to), v["path"])
	if e.hasOrder {
		place = append(place, "order"...)
	}
	sum := sha256.Sum256(place)
	return Prefix + version + "." + hex.EncodeToString(sum[:8]), string(jsontree.Append(nil, v))
}

// parseEntry returns the entry of a value. It reports whether the value is an entry.
func parseEntry(v any) (*entry, bool) {
	object, isObject := v.(map[string]any)
	path, isList := object["path"].([]any)
	if !isObject || !isList || len(path) == 0 {
		return nil, false
	}
	e := &entry{original: jsontree.Member(object, "original"), returned: jsontree.Member(object, "returned")}
	e.hasOrder, e.isLeftover = object["order"] == true, object["left"] == true
	if from, isNumber := object["from"].(jsontree.Number); isNumber {
		e.absentDepth, _ = strconv.Atoi(string(from)) // 0 for another number
	}
	for _, each := range path {
		switch each := each.(type) {
		case string:
			e.path = append(e.path, segment{each, false})
		case map[string]any:
			e.path = append(e.path, segment{string(jsontree.Append(nil, each)), true})
		default:
			return nil, false
		}
	}
	if first := e.path[0]; first.isKey || isFixed(first.text) {
		return nil, false
	}
	if e.hasOrder && (!isOrder(e.original) || !isOrder(e.returned)) {
		return nil, false
	}
	return e, true
}

// isFixed reports whether a member of an object belongs to yare: its kind and its metadata.
func isFixed(name string) bool { return name == "apiVersion" || name == "kind" || name == "metadata" }

// isOrder reports whether v is a list of keys.
func isOrder(v any) bool {
	list, isList := v.([]any)
	return isList && !slices.ContainsFunc(list, func(each any) bool {
		_, isObject := each.(map[string]any)
		return !isObject
	})
}

// orderValue returns the value of a list of keys.
func orderValue(keys []string) []any {
	list := make([]any, len(keys))
	for i, key := range keys {
		list[i] = jsontree.Parse([]byte(key))
	}
	return list
}

// orderOf returns the keys of the value of an order.
func orderOf(v any) []string {
	list, _ := v.([]any)
	keys := make([]string, len(list))
	for i, each := range list {
		keys[i] = string(jsontree.Append(nil, each))
	}
	return keys
}

// compare orders entries by their paths. An entry with an order comes behind the others of its path.
func (e *entry) compare(other *entry) int {
	return cmp.Or(
		slices.CompareFunc(e.path, other.path, segment.compare), boolOrder(e.hasOrder)-boolOrder(other.hasOrder))
}

// compareAll orders entries by all of their fields.
func (e *entry) compareAll(other *entry) int {
	if order := e.compare(other); order != 0 {
		return order
	}
	return bytes.Compare(jsontree.Append(nil, e.value()), jsontree.Append(nil, other.value()))
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

// overlaps reports whether e and other are about the same value, or whether one of them is about a part of the other's
// value.
func (e *entry) overlaps(other *entry) bool {
	if e.hasOrder || other.hasOrder {
		return e.hasOrder && other.hasOrder && slices.Equal(e.path, other.path)
	}
	n := min(len(e.path), len(other.path))
	return slices.Equal(e.path[:n], other.path[:n])
}

// withLeftover returns e with the field isLeftover.
func (e *entry) withLeftover(isLeftover bool) *entry {
	if e.isLeftover == isLeftover {
		return e
	}
	other := *e
	other.isLeftover = isLeftover
	return &other
}

// generalPath returns the path of e for people, with [*] for each item of a list and each key of a map, such as
// .spec.ports[*].name. s is the schema of the whole object.
func (e *entry) generalPath(s *crd.Schema) string {
	var b strings.Builder
	for _, each := range e.path {
		switch {
		case each.isKey:
			b.WriteString("[*]")
			if s != nil {
				s = s.Items
			}
			continue
		case s != nil && s.Properties[each.text] == nil && s.AdditionalProperties != nil:
			b.WriteString("[*]")
		default:
			b.WriteString("." + each.text)
		}
		s = jsontree.Property(s, each.text)
	}
	return b.String()
}
