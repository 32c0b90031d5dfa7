package crd

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// directive is one key of a crd tag with its value: [scope.]key[=value].
type directive struct {
	// scope leads from the field to the schema that the directive changes: "items" and "values",
	// outermost first.
	scope []string
	key   string
	value string
	// hasValue is true if there is a value, which may be empty.
	hasValue bool
}

func (d directive) String() string {
	name := strings.Join(append(d.scope[:len(d.scope):len(d.scope)], d.key), ".")
	if !d.hasValue {
		return name
	}
	return name + "=" + d.value
}

// applyWithin changes the schema that the scope of d leads to from s. It adds that schema to touched.
func (d directive) applyWithin(s *Schema, touched *[]*Schema) error {
	target, err := d.target(s)
	if err != nil || d.key == "type" { // schemaOfType has applied it
		return err
	}
	if !slices.Contains(*touched, target) {
		*touched = append(*touched, target)
	}
	return applyTagKey(target, d)
}

// target returns the schema that the scope of d leads to from s.
func (d directive) target(s *Schema) (*Schema, error) {
	for _, scope := range d.scope {
		switch {
		case scope == "items" && s.Items != nil:
			s = s.Items
		case scope == "values" && s.AdditionalProperties != nil:
			s = s.AdditionalProperties
		case scope == "items":
			return nil, fmt.Errorf("%s: items. is for lists, and this is of type %s", d, s.typeName())
		default:
			return nil, fmt.Errorf("%s: values. is for maps, and this is of type %s", d, s.typeName())
		}
	}
	if len(d.scope) > 0 &&
		slices.Contains([]string{"required", "optional", "column", "wide", "selectable", "default", "acceptLoss"}, d.key) {
		return nil, fmt.Errorf("%s: %s is for the field itself, not for its elements", d, d.key)
	}
	return s, nil
}

// lookupStructTag returns the value of one key of a struct tag, or an error if the tag is malformed:
// the Lookup of package reflect finds nothing after the first mistake.
func lookupStructTag(tag reflect.StructTag, key string) (string, error) {
	value, ok := tag.Lookup(key)
	if !ok && strings.Contains(string(tag), key+":") {
		return "", fmt.Errorf(
			"the struct tag `%s` is malformed: write key:\"value\" pairs with one space between, and \\\\ for a backslash", tag)
	}
	return value, nil
}

// parseTag splits a crd tag into its directives, at the commas outside of quotes.
func parseTag(tag string) ([]directive, error) {
	var all []directive
	var texts []string // of each of all
	var problems []error
	rest := tag
	for more := strings.TrimSpace(tag) != ""; more; {
		var d directive
		var err error
		text := rest
		d, rest, more, err = nextDirective(rest)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		text = text[:len(text)-len(rest)]
		if more {
			text = text[:len(text)-1]
		}
		all, texts = append(all, d), append(texts, text)
	}
	all, splitProblems := joinSplitValues(all, texts)
	problems = append(problems, splitProblems...)
	for _, d := range all {
		if strings.Contains(d.key, ".") {
			problems = append(problems,
				fmt.Errorf("%q does not begin with items. or values., the elements of a list and the values of a map", d.key))
		}
	}
	return all, errors.Join(problems...)
}

// joinSplitValues returns the directives whose values have no comma. A comma outside of quotes ends a value. If the
// text after the comma is no key, the comma was meant as a part of the value. Each value of this kind is a problem that
// shows how to write it.
func joinSplitValues(directives []directive, texts []string) (whole []directive, problems []error) {
	for i := 0; i < len(directives); {
		d, end := directives[i], i+1
		for d.hasValue && mayHaveCommas(d.key) && end < len(directives) && !isLikeKey(directives[end].key) {
			end++
		}
		if end == i+1 {
			whole = append(whole, d)
		} else {
			var rest []string
			for _, text := range texts[i+1 : end] {
				rest = append(rest, strings.Trim(strings.TrimSpace(text), "'"))
			}
			_, value, _ := strings.Cut(strings.Join(texts[i:end], ","), "=")
			d.value = "'" + strings.ReplaceAll(value, "'", "''") + "'"
			advice := "quote values that contain commas"
			if isUnion := isUnionKey(d.key); isUnion || d.key == "enum" {
				d.value = strings.Join(append([]string{directives[i].value}, rest...), "|")
				advice = "separate the values of an enum by |"
				if isUnion {
					advice = "separate the names by |"
				}
			}
			problems = append(problems, fmt.Errorf("%s: %q is no key: %s, as in %s", directives[i], rest[0], advice, d))
		}
		i = end
	}
	return whole, problems
}

// mayHaveCommas reports whether values of this key may contain commas.
func mayHaveCommas(key string) bool {
	return slices.Contains([]string{"enum", "default", "pattern", "rule", "message", "column"}, key) || isUnionKey(key)
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
		d.hasValue = true
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
		if !found || scope != "items" && scope != "values" {
			break
		}
		d.scope, name = append(d.scope, scope), after
	}
	d.key = name
	return d, rest, more, nil
}

// nextValue returns the value at the beginning of text, up to a comma or the end, and the rest.
// Two quotes inside of quotes stand for one.
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
