package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferenceOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, before, after string
		want                []fieldChange
	}{
		{"equal", `{"a":1}`, `{"a": 1}`, nil},
		{"a value", `{"spec":{"replicas":1}}`, `{"spec":{"replicas":3}}`, []fieldChange{{".spec.replicas", "1", "3"}}},
		{"added and removed", `{"a":1}`, `{"b":{"c":true}}`, []fieldChange{{".a", "1", ""}, {".b", "", `{"c":true}`}}},
		{"names that are no identifiers", `{"metadata":{"labels":{}}}`, `{"metadata":{"labels":{"app.kubernetes.io/name":"x"}}}`,
			[]fieldChange{{`.metadata.labels["app.kubernetes.io/name"]`, "", `"x"`}}},
		{"what the server counts", `{"metadata":{"resourceVersion":"1","generation":1,"managedFields":[]}}`, `{"metadata":{"resourceVersion":"2","generation":2,"managedFields":[{}]}}`, nil},
		{"a list by names", `{"c":[{"name":"a","image":"1"},{"name":"b","image":"1"}]}`, `{"c":[{"name":"b","image":"2"},{"name":"a","image":"1"},{"name":"n"}]}`,
			[]fieldChange{{".c[b].image", `"1"`, `"2"`}, {".c[n]", "", `{"name":"n"}`}}},
		{"an element is gone", `{"c":[{"name":"a"},{"name":"b"}]}`, `{"c":[{"name":"b"}]}`, []fieldChange{{".c[a]", `{"name":"a"}`, ""}}},
		{"conditions by types", `{"c":[{"type":"Ready","status":"False"}]}`, `{"c":[{"type":"Ready","status":"True"}]}`, []fieldChange{{".c[Ready].status", `"False"`, `"True"`}}},
		{"a list whose names are not unique", `{"p":[{"name":"a","n":1},{"name":"a","n":2}]}`, `{"p":[{"name":"a","n":1},{"name":"a","n":3}]}`, []fieldChange{{".p[1].n", "2", "3"}}},
		{"a list of values", `{"args":["x","y"]}`, `{"args":["x"]}`, []fieldChange{{".args[1]", `"y"`, ""}}},
		{"another type", `{"a":{"b":1}}`, `{"a":[1]}`, []fieldChange{{".a", `{"b":1}`, "[1]"}}},
		{"null and nothing", `{"a":null}`, `{}`, []fieldChange{{".a", "null", ""}}},
		{"no JSON", `{"a":`, `nothing`, []fieldChange{{"", `{"a":`, "nothing"}}},
	} {
		if diff := cmp.Diff(test.want, differenceOf([]byte(test.before), []byte(test.after)).Fields); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestDifferenceIsBounded(t *testing.T) {
	t.Parallel()
	var before, after []string
	for i := range 100 {
		before = append(before, fmt.Sprintf(`"%s%d":"%s"`, strings.Repeat("n", 1000), i, strings.Repeat("ä", 1000)))
		after = append(after, fmt.Sprintf(`"%s%d":"%s"`, strings.Repeat("n", 1000), i, strings.Repeat("ö", 1000)))
	}
	d := differenceOf([]byte("{"+strings.Join(before, ",")+"}"), []byte("{"+strings.Join(after, ",")+"}"))
	if len(d.Fields) != maxFieldChanges || d.MoreCount != 100-maxFieldChanges {
		t.Errorf("%d fields and %d more", len(d.Fields), d.MoreCount)
	}
	for _, f := range d.Fields {
		if len(f.Before) > maxValue+len("…") || len(f.Path) > maxPath+len("…") || strings.Contains(f.Before, "\uFFFD") {
			t.Fatalf("a field is not cut at a character: %q", f)
		}
	}
}

func TestFieldsOf(t *testing.T) {
	t.Parallel()
	got := fieldsOf([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[1]},"data":{"text":"hello"}}`)).Fields
	want := []fieldChange{{".data.text", "", `"hello"`}, {".metadata.name", "", `"a"`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzDifferenceOf(f *testing.F) {
	f.Add(`{"a":[{"name":"x"}]}`, `{"a":[{"name":"y"}],"b":"\ud800"}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		d := differenceOf([]byte(before), []byte(after))
		if len(d.Fields) > maxFieldChanges {
			t.Fatal("too many fields")
		}
		if same := differenceOf([]byte(after), []byte(after)); len(same.Fields) != 0 {
			t.Fatalf("%q differs from itself: %q", after, same.Fields)
		}
	})
}
