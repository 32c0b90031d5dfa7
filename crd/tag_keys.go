package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tagKey is the effect of one key of the crd tag on a schema.
type tagKey struct {
	// on holds the schema types for which the key has a meaning. Empty means all types.
	on  []string
	set func(s *Schema, d directive) error
}

// The types of schemas, with two names of our own for schemas without a type.
const (
	typeArray       = "array"
	typeBoolean     = "boolean"
	typeInteger     = "integer"
	typeNumber      = "number"
	typeObject      = "object"
	typeString      = "string"
	typeIntOrString = "int-or-string"
	typeAny         = "any"

	// typeStruct is a value of the key type only.
	typeStruct = "struct"
)

// tagKeys holds the keys of the crd tag that change a schema. The keys about the field as a
// whole (see fieldKeys) are not among them.
var tagKeys = map[string]tagKey{
	"minimum":    {numbers(), number(func(s *Schema) **float64 { return &s.Minimum })},
	"maximum":    {numbers(), number(func(s *Schema) **float64 { return &s.Maximum })},
	"multipleOf": {numbers(), number(func(s *Schema) **float64 { return &s.MultipleOf })},
	"exclusiveMinimum": {
		numbers(), exclusive("minimum", func(s *Schema) (**float64, *bool) { return &s.Minimum, &s.ExclusiveMinimum }),
	},
	"exclusiveMaximum": {
		numbers(), exclusive("maximum", func(s *Schema) (**float64, *bool) { return &s.Maximum, &s.ExclusiveMaximum }),
	},

	"minLength": {[]string{typeString}, count(func(s *Schema) **int64 { return &s.MinLength })},
	"maxLength": {[]string{typeString}, count(func(s *Schema) **int64 { return &s.MaxLength })},
	"pattern":   {[]string{typeString, typeIntOrString}, setPattern},
	"format":    {[]string{typeString, typeInteger, typeNumber}, setFormat},

	"minItems": {[]string{typeArray}, count(func(s *Schema) **int64 { return &s.MinItems })},
	"maxItems": {[]string{typeArray}, count(func(s *Schema) **int64 { return &s.MaxItems })},
	"uniqueItems": {
		nil, useInstead("a server refuses it, because it is slow; for a list of scalars write listType=set"),
	},
	"listType":      {[]string{typeArray}, setListType},
	"listMapKey":    {[]string{typeArray}, setListMapKey},
	"minProperties": {[]string{typeObject}, count(func(s *Schema) **int64 { return &s.MinProperties })},
	"maxProperties": {[]string{typeObject}, count(func(s *Schema) **int64 { return &s.MaxProperties })},
	"mapType":       {[]string{typeObject}, word(func(s *Schema) *string { return &s.MapType }, "atomic", "granular")},

	"preserveUnknownFields": {
		[]string{typeObject, typeAny},
		flag(func(s *Schema) *bool { return &s.PreserveUnknownFields }),
	},
	"embeddedResource": {[]string{typeObject, typeAny}, setEmbeddedResource},
	"nullable":         {nil, flag(func(s *Schema) *bool { return &s.Nullable })},
	"enum":             {[]string{typeString, typeInteger, typeNumber, typeBoolean, typeIntOrString}, setEnum},
	"default":          {nil, setDefault},
	"exactlyOneOf": {
		[]string{typeObject}, setUnion("(has(self.%s)?1:0)", "+", " == 1", "exactly one of the fields in [%s] must be set"),
	},
	"atMostOneOf": {
		[]string{typeObject}, setUnion("(has(self.%s)?1:0)", "+", " <= 1", "at most one of the fields in [%s] may be set"),
	},
	"atLeastOneOf": {[]string{typeObject}, setUnion("has(self.%s)", "||", "", "at least one of the fields in [%s] must be set")},
	"rule":         {nil, setRule},
	"message":      {nil, setMessage},
}

// numbers returns the types of numbers.
func numbers() []string { return []string{typeInteger, typeNumber} }

// isKey reports whether there is a key of the crd tag called name.
func isKey(name string) bool {
	return tagKeys[name].set != nil || slices.Contains(fieldKeys(), name)
}

// isLikeKey reports whether name is a key of the crd tag, or resembles one.
func isLikeKey(name string) bool { return isKey(name) || likelyMeant(name, allKeys()) != "" }

// fieldKeys returns the keys about the field as a whole.
func fieldKeys() []string {
	return []string{"required", "optional", "column", "wide", "selectable", "type", "acceptLoss"}
}

// allKeys returns all keys of the crd tag, sorted.
func allKeys() []string {
	keys := fieldKeys()
	for key := range tagKeys {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// allowedKeys returns the keys with a meaning for a schema of this type, for error messages.
func allowedKeys(kind string) string {
	keys := []string{"required", "optional", "type", "acceptLoss"}
	for key, k := range tagKeys {
		if key != "uniqueItems" && (k.on == nil || slices.Contains(k.on, kind)) {
			keys = append(keys, key)
		}
	}
	switch kind {
	case typeArray:
		keys = append(keys, "items.…")
	case typeObject:
		keys = append(keys, "values.… (on a map)")
	default:
		keys = append(keys, "column", "wide", "selectable")
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}

// applyTagKey changes s by d.
func applyTagKey(s *Schema, d directive) error {
	k, known := tagKeys[d.key]
	if !known {
		advice := ""
		if near := likelyMeant(d.key, allKeys()); near != "" {
			advice = ": did you mean " + near + "?"
		}
		return fmt.Errorf("%s: there is no such key%s; on a field of type %s these are allowed: %s",
			d, advice, s.typeName(), allowedKeys(s.typeName()))
	}
	if k.on != nil && !slices.Contains(k.on, s.typeName()) {
		return fmt.Errorf("%s: it is for the types %s, and this is a field of type %s, where these are allowed: %s",
			d, strings.Join(k.on, ", "), s.typeName(), allowedKeys(s.typeName()))
	}
	if err := k.set(s, d); err != nil {
		return fmt.Errorf("%s: %w", d, err)
	}
	return nil
}

// number returns the effect of a key that sets a number.
func number(fieldOf func(*Schema) **float64) func(*Schema, directive) error {
	return func(s *Schema, d directive) error {
		v, err := strconv.ParseFloat(d.value, 64)
		_, errLiteral := literal(&Schema{Type: typeNumber}, d.value)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return fmt.Errorf("a bound is stored as a float64, which cannot hold %s: the nearest value that works is %s",
				d.value, numberText(math.Copysign(math.MaxFloat64, v)))
		case err != nil || errLiteral != nil:
			return fmt.Errorf("the value must be a number, as in %s=3", d.key)
		case s.Type == typeInteger && !isExact(d.value, v):
			return fmt.Errorf("a bound is stored as a float64, which cannot hold %s: the nearest value that works is %s",
				d.value, numberText(nearestFitting(s, v)))
		case d.key == "multipleOf" && s.Type == typeInteger && v != float64(int64(v)):
			return errors.New("the value must be a whole number, as the field is")
		case d.key == "multipleOf" && v <= 0:
			return errors.New("the value must be above 0")
		}
		*fieldOf(s) = &v
		return nil
	}
}

// isExact reports whether v, the float64 of a text, equals the integer of the text. It returns true for a text that is
// not an int64. Example: the float64 of 9007199254740993 is 9007199254740992.
func isExact(text string, v float64) bool {
	i, err := strconv.ParseInt(text, 10, 64)
	return err != nil || v < math.MaxInt64 && int64(v) == i
}

// exclusive returns the effect of a key that sets an exclusive bound. Without a value it makes the bound
// that another key has set exclusive.
func exclusive(bound string, fieldOf func(*Schema) (**float64, *bool)) func(*Schema, directive) error {
	return func(s *Schema, d directive) error {
		at, is := fieldOf(s)
		if d.hasValue {
			if err := number(func(*Schema) **float64 { return at })(s, d); err != nil {
				return err
			}
		}
		if *at == nil {
			return fmt.Errorf("write %s=… before it, or %s=…", bound, d.key)
		}
		*is = true
		return nil
	}
}

// count returns the effect of a key that sets a whole number from 0 up.
func count(fieldOf func(*Schema) **int64) func(*Schema, directive) error {
	return func(s *Schema, d directive) error {
		v, err := strconv.ParseInt(d.value, 10, 64)
		if err != nil || v < 0 {
			return fmt.Errorf("the value must be a whole number from 0 up, as in %s=3", d.key)
		}
		*fieldOf(s) = &v
		return nil
	}
}

// flag returns the effect of a key without a value.
func flag(fieldOf func(*Schema) *bool) func(*Schema, directive) error {
	return func(s *Schema, d directive) error {
		if d.hasValue {
			return fmt.Errorf("it takes no value: write %s", d.key)
		}
		*fieldOf(s) = true
		return nil
	}
}

// word returns the effect of a key whose value is one of words.
func word(fieldOf func(*Schema) *string, words ...string) func(*Schema, directive) error {
	return func(s *Schema, d directive) error {
		if !slices.Contains(words, d.value) {
			return fmt.Errorf("the value must be one of %s", strings.Join(words, ", "))
		}
		*fieldOf(s) = d.value
		return nil
	}
}

// useInstead returns the effect of a key that is an error with advice.
func useInstead(advice string) func(*Schema, directive) error {
	return func(*Schema, directive) error { return errors.New(advice) }
}

// setPattern sets a regular expression, in the syntax of Go, which servers use.
func setPattern(s *Schema, d directive) error {
	if d.value == "" {
		return errors.New("the value must be a regular expression")
	}
	if _, err := regexp.Compile(d.value); err != nil {
		return err
	}
	s.Pattern = d.value
	return nil
}

// setFormat sets a format. Servers ignore formats that they do not know, so these are errors.
func setFormat(s *Schema, d directive) error {
	known := map[string][]string{
		typeString:  slices.Sorted(maps.Keys(formats)),
		typeInteger: {"int32", "int64"},
		typeNumber:  {"double", "float"},
	}[s.Type]
	if !slices.Contains(known, d.value) {
		return fmt.Errorf("for a field of type %s the value must be one of %s", s.Type, strings.Join(known, ", "))
	}
	s.Format = d.value
	return nil
}

// setListType sets the type of a list. A list that is no map has no keys.
func setListType(s *Schema, d directive) error {
	if d.value != "map" {
		s.ListMapKeys = nil
	}
	return word(func(s *Schema) *string { return &s.ListType }, "atomic", "set", "map")(s, d)
}

// setListMapKey adds a key of a list map.
func setListMapKey(s *Schema, d directive) error {
	if d.value == "" {
		return errors.New("the value must be the JSON name of a field of the items")
	}
	// Conditions have the key type already.
	if !slices.Contains(s.ListMapKeys, d.value) {
		s.ListMapKeys = append(s.ListMapKeys, d.value)
	}
	return nil
}

// setEmbeddedResource makes s an object with apiVersion, kind and metadata.
func setEmbeddedResource(s *Schema, d directive) error {
	if d.hasValue {
		return errors.New("it takes no value: write embeddedResource")
	}
	s.Type, s.EmbeddedResource = typeObject, true
	return nil
}

// setEnum sets the values that s may have.
func setEnum(s *Schema, d directive) error {
	if !d.hasValue {
		return errors.New("the values are missing, as in enum=a|b")
	}
	if !strings.Contains(d.value, "|") && strings.Contains(d.value, ";") {
		return fmt.Errorf("separate the values by |, as in enum=%s", strings.ReplaceAll(d.value, ";", "|"))
	}
	var problems []error
	s.Enum = nil
	for text := range strings.SplitSeq(d.value, "|") {
		value, err := literal(s, text)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if slices.ContainsFunc(s.Enum, func(v json.RawMessage) bool { return string(v) == string(value) }) {
			problems = append(problems, fmt.Errorf("%s occurs twice", value))
		}
		s.Enum = append(s.Enum, value)
	}
	return errors.Join(problems...)
}

// setDefault sets the default of s, which checkSchema checks.
func setDefault(s *Schema, d directive) error {
	if !d.hasValue {
		return errors.New("the value is missing, as in default=3")
	}
	value, err := literal(s, d.value)
	if err != nil {
		return err
	}
	s.Default = value
	return nil
}

// setRule adds a rule in CEL.
func setRule(s *Schema, d directive) error {
	if strings.TrimSpace(d.value) == "" {
		return errors.New("the value must be a rule in CEL, as in rule='self > 0'")
	}
	s.Validations = append(s.Validations, Validation{Rule: d.value})
	return nil
}

// setMessage sets the message of the last rule.
func setMessage(s *Schema, d directive) error {
	if len(s.Validations) == 0 || s.Validations[len(s.Validations)-1].Message != "" {
		return errors.New("it belongs to a rule, and must come after one")
	}
	if strings.TrimSpace(d.value) == "" || strings.ContainsAny(d.value, "\r\n") {
		return errors.New("the value must be one line of text")
	}
	s.Validations[len(s.Validations)-1].Message = d.value
	return nil
}
