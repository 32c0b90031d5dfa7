// Package definitions compares two definitions of a kind: the one that a cluster has, and a new one.
//
// An example. The cluster has the definition of a later release, in which spec has the fields size and backup. The
// definition of an earlier release has only size, and demands at least 1. Compare then finds
//
//	spec.backup   is missing, so that the API server drops its value with the next write of an object
//	spec.size     must be at least 1, so that the API server refuses a write of an object with the value 0
package definitions

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Change is what a new definition takes from the objects that an old definition allows: the value of a field, or the
// permission to write the object.
type Change struct {
	// Version is a version of the kind, such as v1.
	Version string
	// Path is the path of the field, such as spec.items[].name, or empty for a whole version.
	Path string
	// Text continues a sentence about the field.
	Text string

	// elements are the parts of the path to the values that concerns is called with. concerns is nil if the Change
	// concerns all objects.
	elements []string
	concerns func(value any) bool
}

const (
	// anyItem and anyMember are the elements of a path that stand for the items of a list and for the members of a map.
	anyItem   = "[]"
	anyMember = "{}"
)

// Concerns reports whether an object, which is decoded JSON, has a value that the Change concerns.
func (c Change) Concerns(object any) bool {
	return c.concerns == nil || concernsAt(object, c.elements, c.concerns)
}

// concernsAt reports whether concerns is true for a value at the path of elements below value.
func concernsAt(value any, elements []string, concerns func(any) bool) bool {
	if len(elements) == 0 {
		return concerns(value)
	}
	switch element, rest := elements[0], elements[1:]; element {
	case anyItem:
		items, _ := value.([]any)
		return slices.ContainsFunc(items, func(item any) bool { return concernsAt(item, rest, concerns) })
	case anyMember:
		members, _ := value.(map[string]any)
		for _, member := range members {
			if concernsAt(member, rest, concerns) {
				return true
			}
		}
		return false
	default:
		object, _ := value.(map[string]any)
		member, ok := object[element]
		return ok && concernsAt(member, rest, concerns)
	}
}

// Spec is the spec of a CustomResourceDefinition, as far as Compare needs it.
type Spec struct {
	Versions []Version `json:"versions"`
}

// Version is one version of a Spec.
type Version struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
	Schema  struct {
		OpenAPIV3Schema schema `json:"openAPIV3Schema"`
	} `json:"schema"`
}

// schema is an OpenAPI schema as decoded JSON.
type schema = map[string]any

// Compare returns what the definition after takes from the objects that the definition before allows, in the order of
// the versions of before. Members of an object are sorted by their names.
func Compare(before, after Spec) []Change {
	var c comparer
	for _, old := range before.Versions {
		i := slices.IndexFunc(after.Versions, func(v Version) bool { return v.Name == old.Name })
		c.version = old.Name
		switch {
		case !old.Served: // nobody can read or write objects in this version
		case i >= 0 && !after.Versions[i].Served: // see StepProblems
		case i < 0:
			c.changes = append(c.changes,
				Change{Version: old.Name, Text: "is not served any more, so that requests in this version fail"})
		default:
			c.compare(nil, old.Schema.OpenAPIV3Schema, after.Versions[i].Schema.OpenAPIV3Schema)
		}
	}
	return c.changes
}

// comparer collects the changes of a version.
type comparer struct {
	version string
	changes []Change
}

// add adds a change of the field at the path of elements, which concerns values of the field.
func (c *comparer) add(elements []string, concerns func(any) bool, format string, args ...any) {
	c.addFor(elements, elements, concerns, format, args...)
}

// addFor adds a change of the field at a path, which concerns the values at the path of elements. They are other values
// than those of the field if the field is missing.
func (c *comparer) addFor(field, elements []string, concerns func(any) bool, format string, args ...any) {
	path := strings.NewReplacer("."+anyItem, anyItem, "."+anyMember, anyMember).Replace(strings.Join(field, "."))
	c.changes = append(c.changes,
		Change{Version: c.version, Path: path, Text: fmt.Sprintf(format, args...), elements: elements, concerns: concerns})
}

// isAnyValue reports true for each value.
func isAnyValue(any) bool { return true }

// compare compares the schemas of the value at the path of elements.
func (c *comparer) compare(elements []string, before, after schema) {
	if !isTypeKept(before, after) {
		c.add(elements, isAnyValue, "has the type %s in place of %s, so that the API server refuses its value",
			typeOf(after), typeOf(before))
		return
	}
	c.compareRules(elements, before, after)
	c.compareBounds(elements, before, after)
	c.compareMembers(elements, before, after)
	if items, ok := before["items"].(schema); ok {
		if newItems, ok := after["items"].(schema); ok {
			c.compare(join(elements, anyItem), items, newItems)
		}
	}
}

// join returns elements and one more, without sharing memory.
func join(elements []string, element string) []string { return append(slices.Clone(elements), element) }

// typeOf returns the type of a schema as text.
func typeOf(s schema) string {
	if s["x-kubernetes-int-or-string"] == true {
		return "integer or string"
	}
	text, _ := s["type"].(string)
	return cmp.Or(text, "any")
}

// isTypeKept reports whether each value of the type of before has the type of after. For example, each integer is a
// number.
func isTypeKept(before, after schema) bool {
	old, now := typeOf(before), typeOf(after)
	return old == now || now == "any" || old == "integer" && now == "number" ||
		now == "integer or string" && (old == "integer" || old == "string")
}

// compareMembers compares the members of objects and maps.
func (c *comparer) compareMembers(elements []string, before, after schema) {
	old, _ := before["properties"].(schema)
	now, _ := after["properties"].(schema)
	oldMap, isOldMap := before["additionalProperties"].(schema)
	newMap, isNewMap := after["additionalProperties"].(schema)
	keepsUnknown := after["x-kubernetes-preserve-unknown-fields"] == true || isNewMap ||
		after["additionalProperties"] == true
	isUnknown := func(value any) bool {
		members, _ := value.(map[string]any)
		for name := range members {
			if _, ok := now[name]; !ok {
				return true
			}
		}
		return false
	}
	const dropped = "so that the API server drops its value with the next write of an object"
	for _, name := range slices.Sorted(maps.Keys(old)) {
		member, _ := old[name].(schema)
		switch inNew, ok := now[name].(schema); {
		case ok:
			c.compare(join(elements, name), member, inNew)
		case isNewMap:
			c.compare(join(elements, name), member, newMap)
		case !keepsUnknown:
			c.add(join(elements, name), isAnyValue, "is missing, %s", dropped)
		}
	}
	switch {
	case isOldMap && isNewMap:
		c.compare(join(elements, anyMember), oldMap, newMap)
	case (isOldMap || before["x-kubernetes-preserve-unknown-fields"] == true) && !keepsUnknown:
		c.add(elements, isUnknown, "has only the members of the definition, %s",
			strings.Replace(dropped, "its value", "other members", 1))
	}
	for _, name := range texts(after["required"]) {
		property, _ := now[name].(schema)
		if property["default"] == nil && !slices.Contains(texts(before["required"]), name) {
			lacksMember := func(value any) bool {
				members, isObject := value.(map[string]any)
				return isObject && members[name] == nil
			}
			c.addFor(join(elements, name), elements, lacksMember,
				"is required, so that the API server refuses a write of an object without a value")
		}
	}
}

// texts returns the strings of a list.
func texts(list any) []string {
	items, _ := list.([]any)
	var all []string
	for _, item := range items {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// compareRules compares what is not a number: enumerations, patterns, formats, rules in CEL, null, and keys of lists.
func (c *comparer) compareRules(elements []string, before, after schema) {
	if now, ok := after["enum"].([]any); ok {
		old, wasEnum := before["enum"].([]any)
		isMissing := func(value any) bool {
			return !slices.ContainsFunc(now, func(v any) bool { return isEqual(v, value) })
		}
		switch missing := slices.DeleteFunc(slices.Clone(old), func(v any) bool { return !isMissing(v) }); {
		case !wasEnum:
			c.add(elements, isMissing, "must be one of %v", now)
		case len(missing) > 0:
			c.add(elements, isMissing, "cannot be any of %v", missing)
		}
	}
	for _, keyword := range []string{"pattern", "format"} {
		if now, _ := after[keyword].(string); now != "" && now != before[keyword] {
			concerns := isAnyValue
			if re, err := regexp.Compile(now); keyword == "pattern" && err == nil {
				concerns = func(value any) bool { text, isText := value.(string); return isText && !re.MatchString(text) }
			}
			c.add(elements, concerns, "must have the %s %q", keyword, now)
		}
	}
	for _, keyword := range []string{"not", "allOf", "anyOf", "oneOf"} {
		if now := after[keyword]; now != nil && !reflect.DeepEqual(now, before[keyword]) {
			c.add(elements, isAnyValue, "must meet another condition (%s)", keyword)
		}
	}
	rules := celRules(before)
	for _, rule := range celRules(after) {
		if !slices.Contains(rules, rule) {
			c.add(elements, isAnyValue, "must meet the rule %q", rule)
		}
	}
	if before["nullable"] == true && after["nullable"] != true {
		c.add(elements, func(value any) bool { return value == nil }, "cannot be null")
	}
	kind, keys := after["x-kubernetes-list-type"], after["x-kubernetes-list-map-keys"]
	if (kind == "set" || kind == "map") &&
		!(kind == before["x-kubernetes-list-type"] && reflect.DeepEqual(keys, before["x-kubernetes-list-map-keys"])) {
		c.add(elements, isAnyValue, "cannot have two items that are equal or have equal keys")
	}
}

// isEqual reports whether two values are equal, where numbers may be of different Go types. Two large integers can have
// the same float64, and are compared as integers.
func isEqual(a, b any) bool {
	if _, isInteger := a.(int64); isInteger && reflect.TypeOf(a) == reflect.TypeOf(b) {
		return a == b
	}
	m, isNumber := numberOf(a)
	n, areNumbers := numberOf(b)
	return isNumber && areNumbers && m == n || reflect.DeepEqual(a, b)
}

// numberOf returns a number of decoded JSON. It returns false for a value of another type.
func numberOf(value any) (number float64, ok bool) {
	switch n := value.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	default:
		return 0, false
	}
}

// celRules returns the rules in CEL of a schema.
func celRules(s schema) []string {
	validations, _ := s["x-kubernetes-validations"].([]any)
	var rules []string
	for _, v := range validations {
		if fields, ok := v.(map[string]any); ok {
			rules = append(rules, fmt.Sprint(fields["rule"]))
		}
	}
	return rules
}

// bound is a keyword of a schema that limits a number, such as minLength.
type bound struct {
	keyword string
	// text continues a sentence about the field. For minLength it is "must have at least %v characters".
	text    string
	isLower bool
	// measure returns the number that the bound limits. It returns false for a value of another type.
	measure func(value any) (number float64, ok bool)
}

// bounds returns all bounds.
func bounds() []bound {
	length := func(value any) (float64, bool) {
		text, ok := value.(string)
		return float64(utf8.RuneCountInString(text)), ok
	}
	items := func(value any) (float64, bool) { list, ok := value.([]any); return float64(len(list)), ok }
	members := func(value any) (float64, bool) { object, ok := value.(map[string]any); return float64(len(object)), ok }
	return []bound{
		{"minimum", "must be at least %v", true, numberOf}, {"maximum", "must be at most %v", false, numberOf},
		{"minLength", "must have at least %v characters", true, length},
		{"maxLength", "must have at most %v characters", false, length},
		{"minItems", "must have at least %v items", true, items}, {"maxItems", "must have at most %v items", false, items},
		{"minProperties", "must have at least %v members", true, members},
		{"maxProperties", "must have at most %v members", false, members},
	}
}

// compareBounds compares what limits numbers.
func (c *comparer) compareBounds(elements []string, before, after schema) {
	for _, b := range bounds() {
		now, isLimited := numberOf(after[b.keyword])
		old, wasLimited := numberOf(before[b.keyword])
		if !isLimited || wasLimited && (now == old || b.isLower == (now < old)) {
			continue
		}
		c.add(elements, func(value any) bool {
			n, ok := b.measure(value)
			return ok && n != now && b.isLower == (n < now)
		}, b.text, now)
	}
	for _, limit := range []string{"minimum", "maximum"} {
		keyword := "exclusiveM" + limit[1:]
		if after[keyword] == true && before[keyword] != true {
			c.add(elements, func(value any) bool { return isEqual(value, after[limit]) }, "cannot be %v", after[limit])
		}
	}
	if now := after["multipleOf"]; now != nil && !isEqual(now, before["multipleOf"]) {
		c.add(elements, isAnyValue, "must be a multiple of %v", now)
	}
}
