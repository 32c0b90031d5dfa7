package tags

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
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
