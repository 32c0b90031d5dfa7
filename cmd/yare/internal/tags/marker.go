package tags

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// marker is a line of a comment such as +kubebuilder:validation:Minimum=1.
type marker struct {
	comment *ast.Comment
	// text is the line without the plus sign. name is what precedes the value, such as
	// kubebuilder:validation:Minimum.
	text, name, value string
}

// parseMarker returns the marker that a comment is. It returns false for other comments.
func parseMarker(c *ast.Comment) (m marker, ok bool) {
	text, isLine := strings.CutPrefix(c.Text, "//")
	text, isMarker := strings.CutPrefix(strings.TrimSpace(text), "+")
	if !isLine || !isMarker || text == "" || !unicode.IsLetter(rune(text[0])) {
		return m, false
	}
	name, value, _ := strings.Cut(strings.Replace(text, "UniqueItems:", "UniqueItems=", 1), "=")
	name = strings.TrimSuffix(strings.TrimSpace(name), ":")
	m = marker{comment: c, text: text, name: name, value: strings.TrimSpace(value)}
	if strings.HasPrefix(m.name, "k8s:") {
		m.value, _, _ = strings.Cut(m.value, " #")
	}
	return m, true
}

// args returns the arguments of a marker that begins with a name, as in
// kubebuilder:resource:scope=Cluster,shortName=a;b. It returns false for other markers.
func (m marker) args(name string) (args map[string]string, ok bool) {
	rest, ok := strings.CutPrefix(m.text, name)
	if !ok || rest != "" && rest[0] != ':' {
		return nil, false
	}
	args = make(map[string]string)
	rest = strings.TrimPrefix(rest, ":")
	for rest != "" {
		var key, value string
		key, rest, _ = strings.Cut(rest, "=")
		value, rest = cutValue(rest, ",")
		args[strings.TrimSpace(key)] = value
	}
	return args, true
}

// cutValue returns the text before one of the separators, without quotation marks, and the rest behind the separator.
func cutValue(text, separators string) (value, rest string) {
	text = strings.TrimLeft(text, " ")
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		value, _ = strconv.Unquote(quoted)
		text = strings.TrimLeft(text[len(quoted):], " ")
		return value, strings.TrimLeft(text, separators)
	}
	depth := 0
	for i, c := range text {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case depth == 0 && strings.ContainsRune(separators, c):
			return strings.TrimSpace(text[:i]), text[i+1:]
		}
	}
	return strings.TrimSpace(text), ""
}

// listOf returns the items of a value such as a;b or {a,b}.
func listOf(value string) (items []string) {
	if inner, ok := strings.CutPrefix(value, "{"); ok {
		value = strings.ReplaceAll(strings.TrimSuffix(inner, "}"), ",", ";")
	}
	for value != "" {
		var item string
		item, value = cutValue(value, ";")
		items = append(items, item)
	}
	return items
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
		return ruleOf(args)
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

// ruleOf returns the directives of a marker XValidation with these arguments. What a rule of yare has not stays.
func ruleOf(args map[string]string) (all []directive, remains, reason string) {
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

// jsonOf returns the value of a marker as decoded JSON. A scalar without quotation marks that is no JSON is a string.
// Braces hold an object, as in {a: "b"}, or a list, as in {1,2}.
func jsonOf(value string) (any, error) {
	value = strings.TrimSpace(value)
	var v any
	switch {
	case value == "" || json.Unmarshal([]byte(value), &v) == nil:
		return v, nil
	case !strings.HasPrefix(value, "{"):
		text, _ := cutValue(value, "")
		return text, nil
	}
	r := &valueReader{value}
	v, err := r.read()
	if err == nil && r.rest != "" {
		err = fmt.Errorf("%q follows the value", r.rest)
	}
	return v, err
}

// valueReader reads a value of a marker.
type valueReader struct{ rest string }

// accept reports whether a character follows, and reads the character and the spaces around it.
func (r *valueReader) accept(c string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(r.rest, " "), c)
	if ok {
		r.rest = strings.TrimLeft(rest, " ")
	}
	return ok
}

// read reads one value.
func (r *valueReader) read() (any, error) {
	if !r.accept("{") {
		text := r.rest
		if quoted, err := strconv.QuotedPrefix(text); err == nil {
			r.rest = text[len(quoted):]
			return strconv.Unquote(quoted)
		}
		end := strings.IndexAny(text, ",:}")
		if end < 0 {
			end = len(text)
		}
		r.rest = text[end:]
		var v any
		if word := strings.TrimSpace(text[:end]); json.Unmarshal([]byte(word), &v) != nil {
			return word, nil
		}
		return v, nil
	}
	object, list := map[string]any{}, []any{}
	for !r.accept("}") {
		if r.rest == "" {
			return nil, errors.New("a brace is missing")
		}
		v, err := r.read()
		if err == nil && r.accept(":") {
			key := fmt.Sprint(v)
			object[key], err = r.read()
		} else {
			list = append(list, v)
		}
		if err != nil {
			return nil, err
		}
		r.accept(",")
	}
	if len(list) > 0 {
		return list, nil
	}
	return object, nil
}
