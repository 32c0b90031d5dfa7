package tags

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// directive is one key of a crd tag, such as minimum=1 or items.maxLength=63.
type directive struct {
	key, value string
	hasValue   bool
}

// String returns the directive as a tag has it.
func (d directive) String() string {
	switch {
	case !d.hasValue:
		return d.key
	case strings.ContainsAny(d.value, ",'") || strings.TrimSpace(d.value) != d.value:
		return d.key + "='" + strings.ReplaceAll(d.value, "'", "''") + "'"
	default:
		return d.key + "=" + d.value
	}
}

// isRepeated reports whether a tag can have the key several times.
func isRepeated(key string) bool {
	key = key[strings.LastIndexByte(key, '.')+1:]
	return slices.Contains([]string{"rule", "message", "listMapKey", "exactlyOneOf", "atMostOneOf", "atLeastOneOf"}, key)
}

// tagOf returns the text of a crd tag that begins with old. A key that old or an earlier directive has is left out. A
// bound precedes what makes the bound exclusive.
func tagOf(old string, directives []directive) string {
	slices.SortStableFunc(directives, func(a, b directive) int { return order(a.key) - order(b.key) })
	keys := keysOf(old)
	var added []string
	for _, d := range directives {
		if slices.Contains(keys, d.key) && !isRepeated(d.key) || isRepeated(d.key) && strings.Contains(old, d.String()) {
			continue
		}
		keys, added = append(keys, d.key), append(added, d.String())
	}
	return strings.Trim(old+","+strings.Join(added, ","), ",")
}

// keysOf returns the keys of a crd tag. A comma within a value adds words that are no keys.
func keysOf(tag string) (keys []string) {
	for text := range strings.SplitSeq(tag, ",") {
		key, _, _ := strings.Cut(text, "=")
		keys = append(keys, strings.TrimSpace(key))
	}
	return keys
}

// order returns a number by which the directives of a tag are sorted.
func order(key string) int {
	switch {
	case key == "required" || key == "optional" || key == "type":
		return 0
	case strings.Contains(key, "exclusive"):
		return 2
	default:
		return 1
	}
}

const (
	validation = "kubebuilder:validation:"
	// isNoMatter is the reason of a marker that says nothing about a definition.
	isNoMatter = "-"
)

// directivesOf returns the directives that a marker of a value stands for. remains is the text of the marker that
// stays as a comment, and reason says why. Both are empty if nothing stays. A marker that says nothing about a
// definition stays with the reason isNoMatter.
func directivesOf(m marker, isList bool) (all []directive, remains, reason string) {
	add := func(key, value string, hasValue bool) { all = append(all, directive{key, value, hasValue}) }
	stays := func(why string) ([]directive, string, string) { return nil, m.text, why }
	name := m.name
	if args, ok := m.args(validation + "XValidation"); ok {
		return ruleOf(m, args)
	}
	scope := ""
	if rest, ok := strings.CutPrefix(name, validation); ok {
		name = rest
		for strings.HasPrefix(name, "items:") {
			scope, name = scope+"items.", strings.TrimPrefix(name, "items:")
		}
	} else if rest, ok := strings.CutPrefix(name, "k8s:"); ok && slices.Contains(
		strings.Fields("required optional maxItems minItems minimum maximum maxLength minLength listType listMapKey"), rest) {
		name = rest
	}
	key := scope + string(unicode.ToLower(rune(name[0]))) + name[1:]
	text, _ := cutValue(m.value, "")
	switch name {
	case "Minimum", "Maximum", "MultipleOf", "MinLength", "MaxLength", "MinItems", "MaxItems", "MinProperties",
		"MaxProperties", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "Format", "Pattern",
		"listType", "listMapKey", "mapType":
		add(key, text, true)
	case "structType":
		add("mapType", text, true)
	case "ExclusiveMinimum", "ExclusiveMaximum":
		if text == "true" {
			add(key, "", false)
		}
	case "Enum", "ExactlyOneOf", "AtMostOneOf", "AtLeastOneOf":
		items := listOf(m.value)
		if slices.ContainsFunc(items, func(item string) bool { return strings.Contains(item, "|") }) {
			return stays("a crd tag separates the values by |: write a rule in CEL")
		}
		add(key, strings.Join(items, "|"), true)
	case "Type":
		if text != "object" && text != "array" {
			add(scope+"type", text, true)
		}
	case "XIntOrString":
		add(scope+"type", "int-or-string", true)
	case "XEmbeddedResource", "EmbeddedResource":
		add(scope+"embeddedResource", "", false)
	case "XPreserveUnknownFields", "kubebuilder:pruning:PreserveUnknownFields":
		add(scope+"preserveUnknownFields", "", false)
	case "Schemaless":
		add("type", "any", true)
	case "nullable", "Nullable":
		add("nullable", "", false)
	case "kubebuilder:default", "default":
		value, err := defaultOf(m.value, isList)
		if err != nil {
			return stays(err.Error())
		}
		add("default", value, true)
	case "optional", "Optional", "required", "Required": // see requirement
	case "UniqueItems":
		return stays("servers refuse it: for a list of scalars write crd:\"listType=set\"")
	case "kubebuilder:example", "kubebuilder:title":
		return stays("crd has nothing like it: write it into the comment")
	case "k8s:immutable":
		add("rule", "self == oldSelf", true)
		add("message", "field is immutable", true)
	case "k8s:enum":
		return stays("write a method CRDTag of the type that returns enum=a|b")
	default:
		if strings.HasPrefix(m.name, "kubebuilder:") && !strings.HasPrefix(m.name, "kubebuilder:object:") {
			return stays("yare tags does not know it")
		}
		return stays(isNoMatter)
	}
	return all, "", ""
}

// isOfDefinition reports whether a marker says something about a definition.
func isOfDefinition(m marker) bool {
	directives, _, reason := directivesOf(m, false)
	return len(directives) > 0 || reason != isNoMatter || strings.HasPrefix(m.name, "kubebuilder:")
}

// ruleOf returns the directives of a marker XValidation. What a rule of yare has not stays.
func ruleOf(m marker, args map[string]string) (all []directive, remains, reason string) {
	if rule := args["rule"]; rule != "" {
		all = append(all, directive{"rule", rule, true})
		if message := strings.TrimSpace(args["message"]); message != "" {
			all = append(all, directive{"message", message, true})
		}
	}
	var rest []string
	for _, name := range []string{"messageExpression", "reason", "fieldPath", "optionalOldSelf"} {
		if value, ok := args[name]; ok {
			rest = append(rest, name+"="+strconv.Quote(value))
		}
	}
	if rest == nil {
		return all, "", ""
	}
	return all, validation + "XValidation:" + strings.Join(rest, ","), "a rule has only a text and a message"
}

// defaultOf returns the value of a marker as the key default of a tag has it.
func defaultOf(value string, isList bool) (string, error) {
	if strings.HasPrefix(value, "ref(") {
		return "", errors.New("write the value of the constant into crd:\"default=…\"")
	}
	v, err := jsonOf(value)
	if err != nil {
		return "", fmt.Errorf("the value cannot be read: %w", err)
	}
	if object, ok := v.(map[string]any); ok && isList && len(object) == 0 {
		v = []any{}
	}
	if text, ok := v.(string); ok {
		return text, nil
	}
	encoded, err := json.Marshal(v)
	return string(encoded), err
}
