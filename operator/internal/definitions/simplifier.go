package definitions

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// simplifier makes schemas of the same meaning equal.
type simplifier struct {
	// withDescriptions keeps the descriptions.
	withDescriptions bool
}

// simplify returns a schema without what says nothing, such as a default of the server. The schemas within stay as
// they are. The rules in CEL are by their texts.
func (r simplifier) simplify(s schema) schema {
	s = maps.Clone(s)
	r.mergeAllOf(s)
	if !r.withDescriptions {
		delete(s, "description")
	}
	if s["x-kubernetes-int-or-string"] == true {
		delete(s, "anyOf")
		delete(s, "type")
	}
	if s["x-kubernetes-list-type"] == "atomic" {
		delete(s, "x-kubernetes-list-type")
	}
	if s["x-kubernetes-map-type"] == "granular" {
		delete(s, "x-kubernetes-map-type")
	}
	required, _ := s["required"].([]any)
	s["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool { // such a field is never missing
		field := asSchema(asSchema(s["properties"])[fmt.Sprint(name)])
		return field["default"] != nil
	})
	for _, keyword := range []string{"required", "enum", "x-kubernetes-list-map-keys"} {
		s[keyword] = sorted(s[keyword])
	}
	rules := make(map[string]any)
	for name, each := range byKey(s["x-kubernetes-validations"], "rule") {
		rule, _ := each.(map[string]any)
		rule = maps.Clone(rule)
		delete(rule, "rule")
		rules[unionRule(strings.TrimSpace(name))] = rule
	}
	s["x-kubernetes-validations"] = rules
	maps.DeleteFunc(s, func(keyword string, value any) bool {
		return isEmpty(value) && !slices.Contains(strings.Fields("default additionalProperties items minimum maximum"), keyword)
	})
	return s
}

// mergeAllOf moves the keywords of an allOf into s, where both mean the same together. A keyword that s has with
// another value stays in the allOf.
func (r simplifier) mergeAllOf(s schema) {
	branches, _ := s["allOf"].([]any)
	var rest []any
	for _, each := range branches {
		branch := r.simplify(asSchema(each))
		if rules := asSchema(branch["x-kubernetes-validations"]); rules != nil {
			rest = append(rest, each)
			continue
		}
		for keyword, value := range branch {
			old, isSet := s[keyword]
			m, isNumber := numberOf(old)
			n, areNumbers := numberOf(value)
			switch {
			case !isSet || isEqual(sorted(old), value):
				s[keyword] = value
			case isNumber && areNumbers && strings.HasPrefix(keyword, "max"):
				s[keyword] = min(m, n)
			case isNumber && areNumbers && strings.HasPrefix(keyword, "min"):
				s[keyword] = max(m, n)
			default:
				rest = append(rest, schema{keyword: value})
			}
		}
	}
	s["allOf"] = rest
}

// formerUnion matches a union of fields as controller-gen wrote it before version 0.21.
var formerUnion = regexp.MustCompile(`^\[((?:has\(self\.\w+\),? ?)+)\]\.filter\(x, ?x ?== ?true\)\.size\(\) ?(==|<=|>=) ?1$`)

// unionRule returns a rule as yare has it, if it is a union of fields in the former form.
func unionRule(rule string) string {
	parts := formerUnion.FindStringSubmatch(rule)
	if parts == nil {
		return rule
	}
	terms := strings.Split(strings.ReplaceAll(parts[1], " ", ""), ",")
	if parts[2] == ">=" {
		return strings.Join(terms, "||")
	}
	return "(" + strings.Join(terms, "?1:0)+(") + "?1:0) " + parts[2] + " 1"
}

// isEmpty reports whether a value of decoded JSON is missing, false, zero or empty.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case int64:
		return v == 0
	case float64:
		return v == 0
	default:
		return v == nil || v == false || v == ""
	}
}

// asSchema returns a value as a schema. It is nil if the value is none.
func asSchema(value any) schema {
	s, _ := value.(schema)
	return s
}

// sorted returns a list in the order of the texts of its items, and any other value as it is.
func sorted(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}
	return slices.SortedFunc(slices.Values(list), func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}
