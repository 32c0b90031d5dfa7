// Package yaml writes JSON as YAML, and reads YAML as JSON.
//
// The half of gopkg.in/yaml and its successors that writes is linked with all that it can do for any
// Go value. The YAML of an operator comes from JSON, and needs a tenth of that code.
package yaml

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

const (
	// lineWidth is the column after which a long text goes on in another line.
	lineWidth = 80

	// maxNameLength is the number of bytes that a name can have: a reader looks for the colon in
	// 1024 characters.
	maxNameLength = 1000
)

// Marshal returns the YAML of what v encodes by encoding/json: an object. The names of its members
// are in alphabetical order. A text that a reader of YAML 1.1 or 1.2 would take for anything else has
// quotes.
func Marshal(v any) ([]byte, error) {
	encoded, err := json.Marshal(v, jsonv1.DefaultOptionsV1())
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(encoded)
	if err := value.Compact(); err != nil {
		return nil, err
	}
	if value.Kind() != '{' {
		return nil, fmt.Errorf("a %T does not encode as an object", v)
	}
	var w writer
	err = w.writeValue(value, 0)
	return w.text, err
}

// writer appends YAML to text.
type writer struct{ text []byte }

// writeValue writes a compact value and the end of its line. The value begins at the end of the text,
// and its other lines have an indent.
func (w *writer) writeValue(value jsontext.Value, indent int) error {
	switch {
	case value.Kind() == '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return err
		}
		w.writeString(s, indent)
	case !isBlock(value):
		w.text = append(w.text, value...)
	case value.Kind() == '{':
		return w.writeMembers(value, indent)
	default:
		return w.writeItems(value, indent)
	}
	w.text = append(w.text, '\n')
	return nil
}

// isBlock reports whether a compact value takes lines of its own.
func isBlock(value jsontext.Value) bool {
	return (value.Kind() == '{' || value.Kind() == '[') && len(value) > len("{}")
}

func (w *writer) writeMembers(object jsontext.Value, indent int) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(object, &members); err != nil {
		return err
	}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			w.writeIndent(indent)
		}
		key := quoted(name)
		if len(key) > maxNameLength {
			return fmt.Errorf("the member %.40q… has a name of %d bytes, and YAML can have at most %d", name, len(key), maxNameLength)
		}
		w.text = append(append(w.text, key...), ':')
		value, inner := members[name], indent+2
		if isBlock(value) {
			if value.Kind() == '[' {
				inner = indent // the dashes stand below the name
			}
			w.text = append(w.text, '\n')
			w.writeIndent(inner)
		} else {
			w.text = append(w.text, ' ')
		}
		if err := w.writeValue(value, inner); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) writeItems(array jsontext.Value, indent int) error {
	var items []jsontext.Value
	if err := json.Unmarshal(array, &items); err != nil {
		return err
	}
	for i, item := range items {
		if i > 0 {
			w.writeIndent(indent)
		}
		w.text = append(w.text, "- "...)
		if err := w.writeValue(item, indent+2); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) writeIndent(indent int) {
	for range indent {
		w.text = append(w.text, ' ')
	}
}

// writeString writes a text as it is if it has several lines, and else in one scalar, which may take
// several lines itself.
func (w *writer) writeString(s string, indent int) {
	if isLiteral(s) {
		w.writeLines(s, indent)
		return
	}
	scalar := quoted(s)
	if scalar[0] == '"' {
		w.text = append(w.text, scalar...)
		return
	}
	// A reader joins lines with one space. So a line ends at a single space.
	column := utf8.RuneCount(w.text[bytes.LastIndexByte(w.text, '\n')+1:])
	for i, r := range scalar {
		if r == ' ' && column > lineWidth && scalar[i-1] != ' ' && i+2 < len(scalar) && scalar[i+1] != ' ' {
			w.text = append(w.text, '\n')
			w.writeIndent(indent)
			column = indent
			continue
		}
		w.text = utf8.AppendRune(w.text, r)
		column++
	}
}

// writeLines writes a text that isLiteral.
func (w *writer) writeLines(s string, indent int) {
	w.text = append(w.text, '|')
	switch {
	case !strings.HasSuffix(s, "\n"):
		w.text = append(w.text, '-')
	case strings.HasSuffix(s, "\n\n"):
		w.text = append(w.text, '+')
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		w.text = append(w.text, '\n')
		if line != "" {
			w.writeIndent(indent)
			w.text = append(w.text, line...)
		}
	}
}

// isLiteral reports whether s can be written line by line: it has several lines, each of them shows
// where it ends, and the first one shows the indent.
func isLiteral(s string) bool {
	return strings.Contains(s, "\n") && s[0] != ' ' && s[0] != '\n' &&
		isPrintable(strings.ReplaceAll(s, "\n", "")) &&
		!strings.Contains(s, " \n") && !strings.HasSuffix(s, " ")
}

// isPrintable reports whether all characters of s are visible, or spaces.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) })
}

// quoted returns s as a scalar in one line, with quotes if it needs any.
func quoted(s string) string {
	switch {
	case !isPrintable(s) || hasOtherType(s):
		return strconv.Quote(s) // its escapes are among those of YAML
	case strings.ContainsAny(s[:1], "#,[]{}&*!|>'\"%@` ") || // they begin what is no text
		strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") || // they separate documents
		strings.Contains(s[:1], "?") || // it begins a name
		strings.HasPrefix(s, "- ") ||
		strings.Contains(s, ": ") || strings.HasSuffix(s, ":") ||
		strings.Contains(s, " #") || strings.HasSuffix(s, " "):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return s
}

// hasOtherType reports whether some reader may take s without quotes for anything but a text: for
// nothing, a boolean, a number or a time. In doubt it is true.
func hasOtherType(s string) bool {
	switch strings.ToLower(s) {
	case "", "~", "null", "y", "n", "yes", "no", "on", "off", "true", "false", "<<", "=":
		return true
	}
	if !strings.ContainsAny(s[:1], "0123456789+-.") {
		return false
	}
	switch unsigned := strings.ToLower(strings.TrimLeft(s, "+-")); {
	case unsigned == ".inf", unsigned == ".nan", strings.HasPrefix(unsigned, "0x"):
		return true
	}
	// Numbers can have an exponent, prefixes such as 0b and 0o, and colons between digits of base 60.
	// Times can have a T and a Z.
	return strings.Trim(s, "0123456789eEbBoO_.,:+-tTzZ ") == ""
}
