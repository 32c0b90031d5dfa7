package crd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checkSchema returns the problems of keys of s that do not go together, and of the default of s.
func checkSchema(s *Schema) []error {
	var problems []error
	problemf := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if s.Minimum != nil && s.Maximum != nil && *s.Minimum > *s.Maximum {
		problemf("the minimum %v is above the maximum %v", *s.Minimum, *s.Maximum)
	}
	problems = append(problems, checkBounds(s)...)
	for _, pair := range []struct {
		what     string
		low, top *int64
	}{
		{"Length", s.MinLength, s.MaxLength},
		{"Items", s.MinItems, s.MaxItems},
		{"Properties", s.MinProperties, s.MaxProperties},
	} {
		if pair.low != nil && pair.top != nil && *pair.low > *pair.top {
			problemf("min%s=%d is above max%s=%d", pair.what, *pair.low, pair.what, *pair.top)
		}
	}
	if s.EmbeddedResource && !s.PreserveUnknownFields && len(s.Properties) == 0 {
		problemf(
			"embeddedResource without properties of its own needs preserveUnknownFields, or nothing of it would be stored")
	}
	if s.Nullable && len(s.Enum) > 0 {
		// A server's validation removes a null from the enum, and then refuses null as a value.
		problemf("nullable with an enum: a server takes no null where there is an enum; leave nullable out, or write a rule instead of the enum")
	}
	problems = append(problems, checkList(s)...)
	if len(problems) == 0 && s.Default != nil {
		var wrong refusals
		wrong.check(s, decode(s.Default), "the default")
		for _, each := range wrong {
			problems = append(problems, errors.New(each))
		}
	}
	return problems
}

// checkBounds returns an error for each bound of a number that the format of the number cannot hold. A server accepts
// such a bound, and then refuses every value of the field. An example is maximum=4294967295 of an int32.
func checkBounds(s *Schema) (problems []error) {
	for _, bound := range []struct {
		key   string
		value *float64
		round func(float64) float64
	}{
		{exclusiveKey("minimum", s.ExclusiveMinimum), s.Minimum, math.Ceil},
		{exclusiveKey("maximum", s.ExclusiveMaximum), s.Maximum, math.Floor},
		{"multipleOf", s.MultipleOf, math.Ceil},
	} {
		if bound.value == nil || fitsFormat(s, *bound.value) {
			continue
		}
		nearest := *bound.value
		if s.Type == typeInteger {
			nearest = bound.round(nearest)
		}
		problems = append(problems, fmt.Errorf("%s=%s: the format %s of the field cannot hold it, "+
			"so a server would refuse every value of the field: the nearest value that works is %s",
			bound.key, numberText(*bound.value), cmp.Or(s.Format, s.Type), numberText(nearestFitting(s, nearest))))
	}
	return problems
}

// exclusiveKey returns the key of a tag for a bound that the key sets: minimum or exclusiveMinimum.
func exclusiveKey(key string, isExclusive bool) string {
	if isExclusive {
		return "exclusive" + capital(key)
	}
	return key
}

// numberText returns a number as a tag has it, with all of its digits.
func numberText(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e21 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// fitsFormat reports whether API servers take v for a number of the format of s. They write v with the fewest digits
// that name the float64, and read that text in the format. So 9223372036854774784 (…775000) fits an int64, and
// -9223372036854775808 (…776000) does not.
func fitsFormat(s *Schema, v float64) bool {
	var err error
	switch text := strconv.FormatFloat(v, 'f', -1, 64); {
	case s.Type == typeInteger && s.Format == "int32":
		_, err = strconv.ParseInt(text, 10, 32)
	case s.Type == typeInteger:
		_, err = strconv.ParseInt(text, 10, 64)
	case s.Format == "float":
		_, err = strconv.ParseFloat(text, 32)
	}
	return err == nil
}

// nearestFitting returns the value nearest to v, which is whole if s is an integer, that fits the format of s.
func nearestFitting(s *Schema, v float64) float64 {
	if fitsFormat(s, v) {
		return v
	}
	limit := float64(math.MaxFloat32)
	switch {
	case s.Type == typeInteger && s.Format == "int32" && v > 0:
		limit = math.MaxInt32
	case s.Type == typeInteger && s.Format == "int32":
		limit = -math.MinInt32
	case s.Type == typeInteger:
		limit = math.MaxInt64 - 1023 // the greatest float64 below 1<<63
	}
	return math.Copysign(limit, v)
}

// checkList returns the reasons why a server refuses a list that is a set or a map.
func checkList(s *Schema) (problems []error) {
	problemf := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch {
	case s.ListType == "map" && len(s.ListMapKeys) == 0:
		problemf("listType=map needs at least one listMapKey=…")
	case s.ListType != "map" && len(s.ListMapKeys) > 0:
		problemf("listMapKey needs listType=map")
	case s.ListType == "map" && (s.Items.Type != typeObject || len(s.Items.Properties) == 0):
		problemf("listType=map needs items that are structs, and these are of type %s", s.Items.typeName())
	case s.ListType == "map":
		for _, key := range s.ListMapKeys {
			p, ok := s.Items.Properties[key]
			switch {
			case !ok:
				problemf("listMapKey=%s: the items have no such field; they have %s",
					key, strings.Join(slices.Sorted(maps.Keys(s.Items.Properties)), ", "))
			case p.typeName() == typeArray || p.typeName() == typeObject || p.typeName() == typeAny:
				problemf("listMapKey=%s: a key must be a scalar, and this is of type %s", key, p.typeName())
			case p.Nullable:
				problemf("listMapKey=%s: a key must not be nullable", key)
			case p.Default == nil && !slices.Contains(s.Items.Required, key):
				problemf("listMapKey=%s: a key must be required or have a default", key)
			}
		}
	case s.ListType == "set":
		i := s.Items
		if i.Nullable {
			problemf("listType=set needs items that are not nullable: leave items.nullable out")
		}
		if i.typeName() == typeAny || i.Type == typeObject && i.MapType != "atomic" ||
			i.Type == typeArray && i.ListType != "atomic" {
			problemf("listType=set needs items that are scalars, or atomic (items.mapType=atomic, items.listType=atomic)")
		}
	}
	return problems
}

// refusals are the reasons for which a server would refuse a value, apart from rules in CEL. They are for
// defaults: a server refuses the whole definition for one of its defaults, and does not name a Go type.
type refusals []string

// addf adds a refusal of what.
//
//go:noinline
func (r *refusals) addf(what, format string, args ...any) {
	*r = append(*r, what+" "+fmt.Sprintf(format, args...))
}

// check adds the refusals of value, which errors call what, as an s.
func (r *refusals) check(s *Schema, value any, what string) {
	if value == nil {
		if !s.Nullable {
			r.addf(what, "is null, and the field is not nullable")
		}
		return
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e json.RawMessage) bool { return isSame(decode(e), value) }) {
		var names []string
		for _, e := range s.Enum {
			names = append(names, string(e))
		}
		r.addf(what, "%s is not in the enum %s", encode(value), strings.Join(names, ", "))
	}
	if !isOfKind(value, s.typeName()) {
		r.addf(what, "%s is not of type %s", encode(value), s.typeName())
		return
	}
	switch v := value.(type) {
	case string:
		r.checkString(s, v, what)
	case json.Number:
		r.checkNumber(s, v, what)
	case []any:
		r.checkCount(what, "items", len(v), s.MinItems, s.MaxItems)
		for i, item := range v {
			if s.Items != nil {
				r.check(s.Items, item, fmt.Sprintf("%s[%d]", what, i))
			}
		}
	case map[string]any:
		r.checkObject(s, v, what)
	}
}

// isOfKind reports whether value belongs to a kind of schemas.
func isOfKind(value any, kind string) bool {
	if kind == typeAny {
		return true
	}
	switch v := value.(type) {
	case bool:
		return kind == typeBoolean
	case string:
		return kind == typeString || kind == typeIntOrString
	case json.Number:
		n, err := v.Float64()
		return kind == typeNumber || (kind == typeInteger || kind == typeIntOrString) && err == nil && n == math.Trunc(n)
	case []any:
		return kind == typeArray
	default:
		return kind == typeObject
	}
}

// checkString adds the refusals of a string.
func (r *refusals) checkString(s *Schema, v, what string) {
	r.checkCount(what, "characters", utf8.RuneCountInString(v), s.MinLength, s.MaxLength)
	if s.Pattern != "" {
		if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(v) {
			r.addf(what, "%q does not match the pattern %s", v, s.Pattern)
		}
	}
	switch check, known := formats[s.Format]; {
	case !known || s.Type != typeString: // servers do not check it either
	case check == nil:
		r.addf(what, "%q is of the format %s, which only a server can check: write a pattern instead of the format",
			v, s.Format)
	case !check(v):
		r.addf(what, "%q is not of the format %s", v, s.Format)
	}
}

// isMultiple reports whether n is a multiple of factor, by the arithmetic of API servers. Example: 0.3 is a multiple of
// 0.1, although neither is exact in binary: 0.3 · (1/0.1) differs from 3 by less than a billionth.
func isMultiple(n, factor float64) bool {
	quotient := n / factor
	if factor < 1 {
		quotient = 1 / factor * n
	}
	whole := math.Trunc(quotient)
	const tolerance = 1e-9
	return quotient == whole || math.Abs(quotient-whole)/(math.Abs(quotient)+math.Abs(whole)) < tolerance
}

// checkNumber adds the refusals of a number.
func (r *refusals) checkNumber(s *Schema, v json.Number, what string) {
	n, _ := v.Float64()
	if s.Minimum != nil && (n < *s.Minimum || s.ExclusiveMinimum && n == *s.Minimum) {
		r.addf(what, "%s is not above the minimum %v", v, *s.Minimum)
	}
	if s.Maximum != nil && (n > *s.Maximum || s.ExclusiveMaximum && n == *s.Maximum) {
		r.addf(what, "%s is not below the maximum %v", v, *s.Maximum)
	}
	if s.MultipleOf != nil && !isMultiple(n, *s.MultipleOf) {
		r.addf(what, "%s is no multiple of %v", v, *s.MultipleOf)
	}
	if s.Format == "int32" && (n < math.MinInt32 || n > math.MaxInt32) {
		r.addf(what, "%s is out of the range of int32", v)
	}
}

// checkObject adds the refusals of an object.
func (r *refusals) checkObject(s *Schema, v map[string]any, what string) {
	r.checkCount(what, "properties", len(v), s.MinProperties, s.MaxProperties)
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			r.addf(what, "lacks the required field %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p := s.Properties[name]
		if p == nil {
			p = s.AdditionalProperties
		}
		if p != nil {
			r.check(p, v[name], what+"."+name)
		} else if !s.PreserveUnknownFields && s.Type == typeObject {
			r.addf(what, "has the unknown field %s", name)
		}
	}
}

// checkCount adds a refusal of a count n that is out of bounds.
func (r *refusals) checkCount(what, unit string, n int, low, top *int64) {
	if low != nil && int64(n) < *low {
		r.addf(what, "has %d %s, fewer than %d", n, unit, *low)
	}
	if top != nil && int64(n) > *top {
		r.addf(what, "has %d %s, more than %d", n, unit, *top)
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

// encode returns a decoded value as JSON, for error messages.
func encode(value any) string {
	text, _ := json.Marshal(value) // cannot fail for what decode returns
	return string(text)
}
