package crd

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// directive is one key of a crd tag with its value: [scope.]key[=value].
type directive struct {
	// scope leads from the field to the schema that the directive changes: "items" and "values",
	// outermost first.
	scope []string
	key   string
	value string
	// given reports whether there is a value, which may be empty.
	given bool
}

func (d directive) String() string {
	name := strings.Join(append(d.scope[:len(d.scope):len(d.scope)], d.key), ".")
	if !d.given {
		return name
	}
	return name + "=" + d.value
}

// lookup returns the value of one key of a struct tag, or an error if the tag is malformed:
// the Lookup of package reflect finds nothing after the first mistake.
func lookup(tag reflect.StructTag, key string) (string, error) {
	value, ok := tag.Lookup(key)
	if !ok && strings.Contains(string(tag), key+":") {
		return "", fmt.Errorf("the struct tag `%s` is malformed: write key:\"value\" pairs with one space between, and \\\\ for a backslash", tag)
	}
	return value, nil
}

// parseTag splits a crd tag into its directives, at the commas outside of quotes.
func parseTag(tag string) ([]directive, error) {
	var all []directive
	var problems []error
	rest := tag
	for more := strings.TrimSpace(tag) != ""; more; {
		var d directive
		var err error
		d, rest, more, err = nextDirective(rest)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		all = append(all, d)
	}
	return all, errors.Join(problems...)
}

// nextDirective returns the first directive of text and the rest. more reports whether a comma
// followed.
func nextDirective(text string) (d directive, rest string, more bool, err error) {
	end := strings.IndexAny(text, "=,")
	if end < 0 {
		end = len(text)
	}
	name := strings.TrimSpace(text[:end])
	rest = text[end:]
	if strings.HasPrefix(rest, "=") {
		d.given = true
		d.value, rest, err = nextValue(rest[1:])
	}
	rest, more = strings.CutPrefix(rest, ",")
	if err != nil {
		return d, rest, more, fmt.Errorf("%s: %w", name, err)
	}
	if name == "" {
		return d, rest, more, errors.New("there is nothing between two commas, or before an equals sign")
	}
	for {
		scope, after, found := strings.Cut(name, ".")
		if !found {
			break
		}
		if scope != "items" && scope != "values" {
			return d, rest, more, fmt.Errorf("%q does not begin with items. or values., the elements of a list and the values of a map", name)
		}
		d.scope, name = append(d.scope, scope), after
	}
	d.key = name
	return d, rest, more, nil
}

// nextValue returns the value at the beginning of text, up to a comma or the end, and the rest.
// Two quotes inside of quotes are one.
func nextValue(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, "'") {
		end := strings.IndexByte(text, ',')
		if end < 0 {
			end = len(text)
		}
		return strings.TrimSpace(text[:end]), text[end:], nil
	}
	var b strings.Builder
	rest = text[1:]
	for {
		end := strings.IndexByte(rest, '\'')
		if end < 0 {
			return "", "", errors.New("the quote is not closed; inside of quotes write '' for a quote")
		}
		b.WriteString(rest[:end])
		rest = rest[end+1:]
		if !strings.HasPrefix(rest, "'") {
			break
		}
		b.WriteByte('\'')
		rest = rest[1:]
	}
	end := strings.IndexByte(rest, ',')
	if end < 0 {
		end = len(rest)
	}
	if strings.TrimSpace(rest[:end]) != "" {
		return "", rest[end:], fmt.Errorf("%q follows the closing quote; inside of quotes write '' for a quote", rest[:end])
	}
	return b.String(), rest[end:], nil
}
