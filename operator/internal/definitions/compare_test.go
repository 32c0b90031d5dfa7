package definitions

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/kube"
)

// definition returns a Definition with one served version, whose spec has a schema.
func definition(t *testing.T, spec string) Spec {
	t.Helper()
	var d Spec
	text := fmt.Sprintf(`{"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":%s}}}}]}`, spec)
	if err := kube.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// An older definition over a newer one lost data, because the check compared versions only.
func TestCompare(t *testing.T) {
	t.Parallel()
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	for name, test := range map[string]struct {
		before, after string
		want          []string
		// concerned and free are values of spec that the first change concerns, and that it does not concern.
		concerned, free string
	}{
		"nothing":       {before: object(`"a":{"type":"string"}`), after: object(`"a":{"type":"string","description":"new"}`)},
		"a field comes": {before: object(``), after: object(`"a":{"type":"string"}`)},
		"a field goes": {
			before: object(`"a":{"type":"string"},"b":{"type":"object","properties":{"c":{"type":"string"}}}`), after: object(`"b":{"type":"object"}`),
			want:      []string{"spec.a is missing, so that the API server drops its value with the next write of an object", "spec.b.c is missing, so that the API server drops its value with the next write of an object"},
			concerned: `{"a":"x"}`, free: `{"b":{}}`,
		},
		"a field goes into unknown fields": {before: object(`"a":{"type":"string"}`), after: `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`},
		"a field goes into a map":          {before: object(`"a":{"type":"string"}`), after: `{"type":"object","additionalProperties":{"type":"string"}}`},
		"a map goes": {
			before: `{"type":"object","additionalProperties":{"type":"string"}}`, after: object(`"a":{"type":"string"}`),
			want:      []string{"spec has only the members of the definition, so that the API server drops other members with the next write of an object"},
			concerned: `{"b":"x"}`, free: `{"a":"x"}`,
		},
		"in items and members": {
			before: object(`"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},"m":{"type":"object","additionalProperties":{"type":"integer"}}`),
			after:  object(`"l":{"type":"array","items":{"type":"object"}},"m":{"type":"object","additionalProperties":{"type":"integer","minimum":1}}`),
			want:   []string{"spec.l[].a is missing, so that the API server drops its value with the next write of an object", "spec.m{} must be at least 1"},

			concerned: `{"l":[{},{"a":"x"}]}`, free: `{"l":[{}],"m":{"a":0}}`,
		},
		"another type": {
			before: object(`"a":{"type":"string"}`), after: object(`"a":{"type":"integer"}`),
			want:      []string{"spec.a has the type integer in place of string, so that the API server refuses its value"},
			concerned: `{"a":"x"}`, free: `{}`,
		},
		"a wider type": {
			before: object(`"a":{"type":"integer"},"b":{"type":"string"}`), after: object(`"a":{"type":"number"},"b":{"x-kubernetes-int-or-string":true}`),
		},
		"required": {
			before: object(`"a":{"type":"string"}`), after: `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`,
			want:      []string{"spec.a is required, so that the API server refuses a write of an object without a value"},
			concerned: `{}`, free: `{"a":"x"}`,
		},
		"required, with a default": {before: object(`"a":{"type":"string"}`), after: `{"type":"object","required":["a"],"properties":{"a":{"type":"string","default":"x"}}}`},
		"a new enumeration": {
			before: object(`"a":{"type":"string"}`), after: object(`"a":{"type":"string","enum":["x","y"]}`),
			want: []string{"spec.a must be one of [x y]"}, concerned: `{"a":"z"}`, free: `{"a":"x"}`,
		},
		"a value of an enumeration goes": {
			before: object(`"a":{"type":"integer","enum":[1,2]}`), after: object(`"a":{"type":"integer","enum":[2,3]}`),
			want: []string{"spec.a cannot be any of [1]"}, concerned: `{"a":1}`, free: `{"a":2}`,
		},
		"a large value of an enumeration goes": { // as a float64, both are 9007199254740992
			before: object(`"a":{"type":"integer","enum":[9007199254740992,9007199254740993]}`), after: object(`"a":{"type":"integer","enum":[9007199254740992]}`),
			want: []string{"spec.a cannot be any of [9007199254740993]"}, concerned: `{"a":9007199254740993}`, free: `{"a":9007199254740992}`,
		},
		"bounds": {
			before: object(`"a":{"type":"integer","minimum":1,"maximum":9},"s":{"type":"string"}`), after: object(`"a":{"type":"integer","minimum":2,"maximum":10},"s":{"type":"string","maxLength":3}`),
			want: []string{"spec.a must be at least 2", "spec.s must have at most 3 characters"}, concerned: `{"a":1}`, free: `{"a":2}`,
		},
		"an exclusive bound": {
			before: object(`"a":{"type":"integer","minimum":1}`), after: object(`"a":{"type":"integer","minimum":1,"exclusiveMinimum":true}`),
			want: []string{"spec.a cannot be 1"}, concerned: `{"a":1}`, free: `{"a":2}`,
		},
		"a pattern, a format and a rule": {
			before: object(`"a":{"type":"string","x-kubernetes-validations":[{"rule":"one"}]}`),
			after:  object(`"a":{"type":"string","pattern":"^x","format":"date","x-kubernetes-validations":[{"rule":"one"},{"rule":"two"}]}`),
			want:   []string{`spec.a must have the pattern "^x"`, `spec.a must have the format "date"`, `spec.a must meet the rule "two"`},
		},
		"null": {
			before: object(`"a":{"type":"string","nullable":true}`), after: object(`"a":{"type":"string"}`),
			want: []string{"spec.a cannot be null"}, concerned: `{"a":null}`, free: `{"a":"x"}`,
		},
		"a list with keys": {
			before: object(`"a":{"type":"array","items":{"type":"string"}}`), after: object(`"a":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}`),
			want: []string{"spec.a cannot have two items that are equal or have equal keys"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := Compare(definition(t, test.before), definition(t, test.after))
			var got []string
			for _, c := range changes {
				got = append(got, c.Path+" "+c.Text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			for text, want := range map[string]bool{test.concerned: true, test.free: false} {
				if text == "" || len(changes) == 0 {
					continue
				}
				var value any
				if err := kube.Unmarshal([]byte(text), &value); err != nil {
					t.Fatal(err)
				}
				if changes[0].Concerns(map[string]any{"spec": value}) != want {
					t.Errorf("the change should concern %s: %t", text, want)
				}
			}
		})
	}
}

// A version that is served and goes is a change of all objects.
func TestCompareVersions(t *testing.T) {
	t.Parallel()
	before, after := definition(t, `{}`), definition(t, `{}`)
	before.Versions = append(before.Versions, Version{Name: "v2", Served: true}, Version{Name: "v0"})
	changes := Compare(before, after)
	if len(changes) != 1 || changes[0].Version != "v2" || !changes[0].Concerns(nil) {
		t.Errorf("the changes are %v", changes)
	}
}

// A version that stays and is not served any more is a step in the life of the version: see [StepProblems]. It was a change of
// all objects, so that --check refused row D.
func TestCompareVersionThatIsNotServedAnyMore(t *testing.T) {
	t.Parallel()
	before, after := definition(t, `{}`), definition(t, `{}`)
	before.Versions = append(before.Versions, Version{Name: "v0", Served: true})
	after.Versions = append(after.Versions, Version{Name: "v0"})
	if changes := Compare(before, after); len(changes) != 0 {
		t.Errorf("the changes are %v", changes)
	}
}
