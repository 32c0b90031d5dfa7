package crd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTag(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string][]directive{
		"":                        nil,
		" ":                       nil,
		"nullable":                {{key: "nullable"}},
		"minimum=0, maximum = 10": {{key: "minimum", value: "0", hasValue: true}, {key: "maximum", value: "10", hasValue: true}},
		"default=":                {{key: "default", hasValue: true}},
		"enum=a|b,column":         {{key: "enum", value: "a|b", hasValue: true}, {key: "column"}},
		"rule='self > 0, or = 1'": {{key: "rule", value: "self > 0, or = 1", hasValue: true}},
		"rule='self != ''x'''":    {{key: "rule", value: "self != 'x'", hasValue: true}},
		"default='' , nullable":   {{key: "default", hasValue: true}, {key: "nullable"}},
		"items.values.minLength=1": {
			{scope: []string{"items", "values"}, key: "minLength", value: "1", hasValue: true},
		},
		"pattern=^a=b$": {{key: "pattern", value: "^a=b$", hasValue: true}},
	} {
		got, err := parseTag(tag)
		if err != nil {
			t.Errorf("%q: %v", tag, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(directive{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tag, diff)
		}
	}
	for tag, want := range map[string]string{
		"a,,b":        "between two commas",
		"a,":          "between two commas",
		"=1":          "before an equals sign",
		"rule='x":     "not closed",
		"rule='x'y":   "follows the closing quote",
		"rule='x'y,b": "follows the closing quote",
		"spec.a=1":    "items. or values.",

		"enum=a,b,c":                     `enum=a: "b" is no key: separate the values of an enum by |, as in enum=a|b|c`,
		"enum='a', 'b',column":           "as in enum=a|b",
		"items.enum=a,b":                 "as in items.enum=a|b",
		"column,pattern=^[a-z]{1,3}$":    `"3}$" is no key: quote values that contain commas, as in pattern='^[a-z]{1,3}$'`,
		"rule=max(self.a, self.b) > 'x'": "as in rule='max(self.a, self.b) > ''x'''",
		"message=must be a, b=c":         "as in message='must be a, b=c'",
	} {
		if _, err := parseTag(tag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error lacks %q: %v", tag, want, err)
		}
	}
}

// Parsing ends for every tag, and the result is the same for the tag that it is written as.
func FuzzParseTag(f *testing.F) {
	for _, tag := range []string{
		"minimum=0,maximum=10", "rule='self > 0',message='it''s'", "items.enum=a|b", "a,,b", "x='", "x=''''", "=,=", "default='{\"a\": [1]}'",
	} {
		f.Add(tag)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		first, err := parseTag(tag)
		if err != nil {
			return
		}
		var parts []string
		for _, d := range first {
			name := strings.Join(append(d.scope[:len(d.scope):len(d.scope)], d.key), ".")
			if d.hasValue {
				name += "='" + strings.ReplaceAll(d.value, "'", "''") + "'"
			}
			parts = append(parts, name)
		}
		again, err := parseTag(strings.Join(parts, ","))
		if err != nil {
			t.Fatalf("%q as %q: %v", tag, parts, err)
		}
		if diff := cmp.Diff(first, again, cmp.AllowUnexported(directive{})); diff != "" {
			t.Errorf("%q as %q (-first +again):\n%s", tag, parts, diff)
		}
		// Applying must not panic on anything.
		for _, d := range first {
			for _, kind := range []string{typeString, typeInteger, typeNumber, typeBoolean, typeObject, typeIntOrString, typeAny} {
				s, err := schemaOfTypeKey(kind)
				if err != nil {
					t.Fatal(err)
				}
				if target, err := d.target(s); err == nil && applyTagKey(target, d) == nil {
					checkSchema(s)
				}
			}
			list := &Schema{Type: typeArray, Items: &Schema{Type: typeObject}}
			if target, err := d.target(list); err == nil && applyTagKey(target, d) == nil {
				checkSchema(list)
			}
		}
	})
}

// Regression: the default 0.3 was refused beside multipleOf=0.1, which API servers accept.
func TestIsMultiple(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n, factor float64
		want      bool
	}{{0.3, 0.1, true}, {0.35, 0.1, false}, {-0.3, 0.1, true}, {6, 2, true}, {7, 2, false}, {0, 0.1, true}, {2.5, 2.5, true}} {
		if got := isMultiple(test.n, test.factor); got != test.want {
			t.Errorf("%v is a multiple of %v: %t", test.n, test.factor, got)
		}
	}
}
