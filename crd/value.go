package crd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// literal returns text from a tag as a value of s, in JSON.
func literal(s *Schema, text string) (json.RawMessage, error) {
	if text == "null" && s.Nullable {
		return json.RawMessage(text), nil
	}
	switch s.kind() {
	case typeString:
		return quote(text)
	case typeIntOrString:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.RawMessage(strconv.FormatInt(n, 10)), nil
		}
		return quote(text)
	case typeInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q must be a whole number that int64 holds", text)
		}
		return json.RawMessage(strconv.FormatInt(n, 10)), nil
	case typeNumber:
		if _, err := strconv.ParseFloat(text, 64); err != nil || !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("%q must be a number", text)
		}
		return json.RawMessage(text), nil
	case typeBoolean:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%q must be true or false", text)
		}
		return json.RawMessage(text), nil
	default:
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(text)); err != nil {
			return nil, fmt.Errorf("%q must be JSON, in quotes if it has a comma: %w", text, err)
		}
		return compact.Bytes(), nil
	}
}

// quote returns text as a JSON string.
func quote(text string) (json.RawMessage, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the value is not valid UTF-8")
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(text)
	return bytes.TrimSpace(b.Bytes()), err
}

// decode returns the value of text, which must be JSON. Numbers stay as they are written.
func decode(text json.RawMessage) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil
	}
	return value
}

// refusals returns the reasons for which a server would refuse value as an s, apart from rules
// in CEL. It checks defaults: a server refuses the whole definition for one of its defaults, and
// does not name a Go type.
func (s *Schema) refusals(value any, what string) (wrong []string) {
	refuse := func(format string, args ...any) {
		wrong = append(wrong, what+" "+fmt.Sprintf(format, args...))
	}
	if value == nil {
		if !s.Nullable {
			refuse("is null, and the field is not nullable")
		}
		return wrong
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e json.RawMessage) bool { return isSame(decode(e), value) }) {
		var names []string
		for _, e := range s.Enum {
			names = append(names, string(e))
		}
		refuse("%s is not in the enum %s", encode(value), strings.Join(names, ", "))
	}
	switch v := value.(type) {
	case bool:
		if k := s.kind(); k != typeBoolean && k != typeAny {
			refuse("%t is not of type %s", v, k)
		}
	case string:
		wrong = append(wrong, s.refuseString(v, what)...)
	case json.Number:
		wrong = append(wrong, s.refuseNumber(v, what)...)
	case []any:
		if k := s.kind(); k != typeArray && k != typeAny {
			refuse("%s is not of type %s", encode(value), k)
			break
		}
		refuseCount(refuse, "items", int64(len(v)), s.MinItems, s.MaxItems)
		for i, item := range v {
			if s.Items != nil {
				wrong = append(wrong, s.Items.refusals(item, fmt.Sprintf("%s[%d]", what, i))...)
			}
		}
	case map[string]any:
		wrong = append(wrong, s.refuseObject(v, what)...)
	}
	return wrong
}

// refuseString returns the refusals of a string.
func (s *Schema) refuseString(v, what string) (wrong []string) {
	refuse := func(format string, args ...any) {
		wrong = append(wrong, what+" "+fmt.Sprintf(format, args...))
	}
	k := s.kind()
	if k != typeString && k != typeIntOrString && k != typeAny {
		refuse("%q is not of type %s", v, k)
		return wrong
	}
	refuseCount(refuse, "characters", int64(utf8.RuneCountInString(v)), s.MinLength, s.MaxLength)
	if s.Pattern != "" {
		if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(v) {
			refuse("%q does not match the pattern %s", v, s.Pattern)
		}
	}
	switch check, known := formats[s.Format]; {
	case !known || s.Type != typeString: // servers do not check it either
	case check == nil:
		refuse("%q is of the format %s, which only a server can check: write a pattern instead of the format", v, s.Format)
	case !check(v):
		refuse("%q is not of the format %s", v, s.Format)
	}
	return wrong
}

// refuseNumber returns the refusals of a number.
func (s *Schema) refuseNumber(v json.Number, what string) (wrong []string) {
	refuse := func(format string, args ...any) {
		wrong = append(wrong, what+" "+fmt.Sprintf(format, args...))
	}
	n, err := v.Float64()
	whole := err == nil && n == math.Trunc(n)
	switch k := s.kind(); {
	case k == typeNumber || k == typeAny:
	case (k == typeInteger || k == typeIntOrString) && whole:
	default:
		refuse("%s is not of type %s", v, k)
		return wrong
	}
	if s.Minimum != nil && (n < *s.Minimum || s.ExclusiveMinimum && n == *s.Minimum) {
		refuse("%s is not above the minimum %v", v, *s.Minimum)
	}
	if s.Maximum != nil && (n > *s.Maximum || s.ExclusiveMaximum && n == *s.Maximum) {
		refuse("%s is not below the maximum %v", v, *s.Maximum)
	}
	if s.MultipleOf != nil && math.Remainder(n, *s.MultipleOf) != 0 {
		refuse("%s is no multiple of %v", v, *s.MultipleOf)
	}
	if s.Format == "int32" && (n < math.MinInt32 || n > math.MaxInt32) {
		refuse("%s is out of the range of int32", v)
	}
	return wrong
}

// refuseObject returns the refusals of an object.
func (s *Schema) refuseObject(v map[string]any, what string) (wrong []string) {
	refuse := func(format string, args ...any) {
		wrong = append(wrong, what+" "+fmt.Sprintf(format, args...))
	}
	if k := s.kind(); k != typeObject && k != typeAny {
		refuse("%s is not of type %s", encode(v), k)
		return wrong
	}
	refuseCount(refuse, "properties", int64(len(v)), s.MinProperties, s.MaxProperties)
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			refuse("lacks the required field %s", name)
		}
	}
	for name, field := range v {
		switch p := s.Properties[name]; {
		case p != nil:
			wrong = append(wrong, p.refusals(field, what+"."+name)...)
		case s.AdditionalProperties != nil:
			wrong = append(wrong, s.AdditionalProperties.refusals(field, what+"."+name)...)
		case !s.PreserveUnknownFields && s.Type == typeObject:
			refuse("has the unknown field %s", name)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// refuseCount refuses a count n that is out of bounds.
func refuseCount(refuse func(string, ...any), what string, n int64, low, top *int64) {
	if low != nil && n < *low {
		refuse("has %d %s, fewer than %d", n, what, *low)
	}
	if top != nil && n > *top {
		refuse("has %d %s, more than %d", n, what, *top)
	}
}

// isSame reports whether a and b are equal. Numbers are compared by value: 1 equals 1.0.
func isSame(a, b any) bool {
	x, isNumber := a.(json.Number)
	y, both := b.(json.Number)
	if isNumber && both {
		f, _ := x.Float64()
		g, _ := y.Float64()
		return f == g
	}
	return encode(a) == encode(b)
}

// encode returns value as JSON, for error messages.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
