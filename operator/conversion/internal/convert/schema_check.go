package convert

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// schemaCheck checks values against the schema of a version. CEL rules are not checked.
type schemaCheck struct {
	root     *crd.Schema
	patterns map[string]*regexp.Regexp
	// enums holds the values of each schema with an enum.
	enums map[*crd.Schema][]any
}

// forbidden is the type in the schema of a place where no value may stand.
const forbidden = "forbidden"

// newSchemaCheck returns the check of a schema, which may be nil. It returns an error for a pattern that is no regular
// expression.
func newSchemaCheck(root *crd.Schema) (*schemaCheck, error) {
	c := &schemaCheck{root: root, patterns: make(map[string]*regexp.Regexp), enums: make(map[*crd.Schema][]any)}
	return c, c.compile(root)
}

// compile compiles the patterns and enums of s.
func (c *schemaCheck) compile(s *crd.Schema) error {
	if s == nil {
		return nil
	}
	if s.Pattern != "" {
		pattern, err := regexp.Compile(s.Pattern)
		if err != nil {
			return fmt.Errorf("the pattern %q of its schema is no regular expression: %w", s.Pattern, err)
		}
		c.patterns[s.Pattern] = pattern
	}
	for _, each := range s.Enum {
		c.enums[s] = append(c.enums[s], jsontree.Parse(each))
	}
	inner := append(slices.Clone(s.AnyOf), s.Items, s.AdditionalProperties)
	for _, each := range s.Properties {
		inner = append(inner, each)
	}
	for _, each := range inner {
		if err := c.compile(each); err != nil {
			return err
		}
	}
	return nil
}

// member returns the schema of a member of an object of s. The schema is nil if anything may stand there.
func (c *schemaCheck) member(s *crd.Schema, name string) *crd.Schema {
	if p := jsontree.Property(s, name); p != nil {
		return p
	}
	if s == nil || s.PreserveUnknownFields || s.EmbeddedResource && isFixed(name) {
		return nil
	}
	return &crd.Schema{Type: forbidden}
}

// fits reports whether v may stand where s is the schema. A part of an object is an object of which any field may be
// missing, as API servers convert for an apply.
func (c *schemaCheck) fits(s *crd.Schema, v any, isPart bool) bool {
	if s == nil || v == nil && (s.Nullable || isPart || s.Type == "" && !s.IntOrString) {
		return true
	}
	isEqual := func(each any) bool { return jsontree.Equal(each, v) }
	if v == nil || s.Enum != nil && !slices.ContainsFunc(c.enums[s], isEqual) {
		return false
	}
	switch v := v.(type) {
	case bool:
		return s.Type == "boolean" || s.Type == "" && !s.IntOrString
	case string:
		return c.fitsText(s, v)
	case jsontree.Number:
		return c.fitsNumber(s, v)
	case []any:
		return c.fitsList(s, v, isPart)
	case map[string]any:
		return c.fitsObject(s, v, isPart)
	}
	return false
}

// fitsObject reports whether an object and its members fit s.
func (c *schemaCheck) fitsObject(s *crd.Schema, object map[string]any, isPart bool) bool {
	if s.Type != "object" && (s.Type != "" || s.IntOrString) || !c.hasMembers(s, object, isPart) {
		return false
	}
	for name, value := range object {
		if !c.fits(c.member(s, name), value, isPart) {
			return false
		}
	}
	if s.EmbeddedResource && !isPart {
		apiVersion, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		return apiVersion != "" && kind != ""
	}
	return true
}

// hasMembers reports whether an object has the members that s requires, and no more members than s allows. It does not
// look at the values of the members.
func (c *schemaCheck) hasMembers(s *crd.Schema, object map[string]any, isPart bool) bool {
	if !isPart {
		for _, name := range s.Required {
			if _, isThere := object[name]; !isThere {
				return false
			}
		}
	}
	return isWithin(len(object), s.MinProperties, s.MaxProperties, isPart)
}

// fitsList reports whether a list and its items fit s.
func (c *schemaCheck) fitsList(s *crd.Schema, list []any, isPart bool) bool {
	if s.Type != "array" && (s.Type != "" || s.IntOrString) || !isWithin(len(list), s.MinItems, s.MaxItems, isPart) {
		return false
	}
	switch s.ListType {
	case "map":
		if _, isKeyed := jsontree.KeyedListOf(s, list); !isKeyed {
			return false
		}
	case "set":
		has := make(map[string]bool, len(list))
		for _, each := range list {
			text := string(jsontree.Append(nil, each))
			if has[text] {
				return false
			}
			has[text] = true
		}
	}
	return !slices.ContainsFunc(list, func(each any) bool { return !c.fits(s.Items, each, isPart) })
}

// isWithin reports whether a number of elements is within the bounds. A part of an object may have too few.
func isWithin(n int, least, most *int64, isPart bool) bool {
	return (least == nil || isPart || int64(n) >= *least) && (most == nil || int64(n) <= *most)
}

func (c *schemaCheck) fitsText(s *crd.Schema, text string) bool {
	if s.Type != "string" && s.Type != "" {
		return false
	}
	n := utf8.RuneCountInString(text)
	if !isWithin(n, s.MinLength, s.MaxLength, false) || s.Pattern != "" && !c.patterns[s.Pattern].MatchString(text) {
		return false
	}
	return hasFormat(s.Format, text)
}

// hasFormat reports whether a text has a format of OpenAPI. It accepts every text for a format that it does not know.
// The table formats of package crd has other rules: it accepts nothing that a server refuses.
func hasFormat(format, text string) bool {
	var err error
	switch format {
	case "byte":
		_, err = base64.StdEncoding.DecodeString(text)
	case "cidr":
		_, err = netip.ParsePrefix(text)
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time", "datetime":
		_, err = time.Parse(time.RFC3339, text)
	case "duration":
		_, err = time.ParseDuration(text)
	case "ipv4", "ipv6":
		var address netip.Addr
		address, err = netip.ParseAddr(text)
		return err == nil && address.Is4() == (format == "ipv4")
	case "mac":
		_, err = net.ParseMAC(text)
	case "uri":
		_, err = url.ParseRequestURI(text)
	}
	return err == nil
}

func (c *schemaCheck) fitsNumber(s *crd.Schema, text jsontree.Number) bool {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return false
	}
	_, err = strconv.ParseInt(string(text), 10, 64)
	isWhole := err == nil || f == math.Trunc(f) && math.Abs(f) < 1<<53
	switch {
	case s.Type == "integer" || s.IntOrString:
		if !isWhole || s.Format == "int32" && (f < math.MinInt32 || f > math.MaxInt32) {
			return false
		}
	case s.Type != "number" && s.Type != "":
		return false
	}
	switch {
	case s.Minimum != nil && (f < *s.Minimum || s.ExclusiveMinimum && f == *s.Minimum),
		s.Maximum != nil && (f > *s.Maximum || s.ExclusiveMaximum && f == *s.Maximum),
		s.MultipleOf != nil && !isMultiple(f, *s.MultipleOf):
		return false
	}
	return true
}

// isMultiple reports whether n is a multiple of factor, by the arithmetic of API servers, as in package crd. Example:
// 0.3 is a multiple of 0.1, although the remainder of their division by math.Mod is nearly 0.1.
func isMultiple(n, factor float64) bool {
	quotient := n / factor
	if factor < 1 {
		quotient = 1 / factor * n
	}
	whole := math.Trunc(quotient)
	const tolerance = 1e-9
	return quotient == whole || math.Abs(quotient-whole)/(math.Abs(quotient)+math.Abs(whole)) < tolerance
}

// fitsMembers reports whether the members of the content of an object fit the schema of the whole object.
func (c *schemaCheck) fitsMembers(s *crd.Schema, content map[string]any, isPart bool) bool {
	for name, value := range content {
		if !c.fits(c.member(s, name), value, isPart) {
			return false
		}
	}
	return true
}

// misfit returns the path of a value in the content of an object that does not fit, such as .spec.size. It returns an
// empty text if all values fit.
func (c *schemaCheck) misfit(s *crd.Schema, v any, path string) string {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range jsontree.SortedNames(v) {
			if inner := c.misfit(c.member(s, name), v[name], path+"."+name); inner != "" {
				return inner
			}
		}
		if path == "" {
			return c.missingMember(s, v)
		}
	case []any:
		for i, each := range v {
			if s == nil {
				break
			}
			if inner := c.misfit(s.Items, each, fmt.Sprintf("%s[%d]", path, i)); inner != "" {
				return inner
			}
		}
	}
	if c.fits(s, v, false) {
		return ""
	}
	return path
}

// missingMember returns the path of a member that the content of a whole object lacks, or an empty text.
func (*schemaCheck) missingMember(s *crd.Schema, content map[string]any) string {
	if s == nil {
		return ""
	}
	for _, name := range s.Required {
		if _, isThere := content[name]; !isThere && !isFixed(name) {
			return "." + name
		}
	}
	return ""
}

// eachEdit calls f with each value that one small edit makes of v: another scalar, a member less, an item of a list
// less.
func (c *schemaCheck) eachEdit(s *crd.Schema, v any, f func(v any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range jsontree.SortedNames(v) {
			with := func(value any) {
				object := maps.Clone(v)
				jsontree.SetMember(object, name, value)
				f(object)
			}
			with(jsontree.Missing{})
			c.eachEdit(jsontree.Property(s, name), v[name], with)
		}
	case []any:
		var items *crd.Schema
		if s != nil {
			items = s.Items
		}
		for i := range v {
			f(slices.Delete(slices.Clone(v), i, i+1))
			c.eachEdit(items, v[i], func(value any) {
				list := slices.Clone(v)
				list[i] = value
				f(list)
			})
		}
	case string:
		if values := c.enums[s]; values != nil {
			for _, each := range values {
				if each != v {
					f(each)
				}
			}
			return
		}
		f(v + "1")
	case jsontree.Number:
		f(jsontree.Number("3"))
	case bool:
		f(!v)
	}
}
