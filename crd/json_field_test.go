package crd

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Mistakes that go vet finds too, so that they cannot be types of this file.
func TestMistakesInStructTags(t *testing.T) {
	t.Parallel()
	type inner struct {
		A string `json:"a"`
	}
	text := reflect.TypeFor[string]()
	embed := func(name string) reflect.StructField {
		return reflect.StructField{Name: name, Type: reflect.TypeFor[inner](), Anonymous: true}
	}
	for _, tc := range []struct {
		name   string
		fields []reflect.StructField
		want   []string
	}{
		{"one name twice", []reflect.StructField{
			{Name: "A", Type: text, Tag: `json:"a"`},
			{Name: "B", Type: text, Tag: `json:"a"`},
		}, []string{`x.T.A: the JSON name "a" is taken by x.T.B`, `x.T.B: the JSON name "a" is taken by x.T.A`}},
		{"one name in two embedded structs", []reflect.StructField{embed("Inner"), embed("Other")},
			[]string{"crd.inner.A: ", "taken by crd.inner.A as well"}},
		{"malformed tag", []reflect.StructField{{Name: "A", Type: text, Tag: `json:"a",crd:"minLength=1"`}},
			[]string{"x.T.A: ", "malformed"}},
		{"bad escape", []reflect.StructField{{Name: "A", Type: text, Tag: `json:"a" crd:"pattern='\d'"`}},
			[]string{"x.T.A: ", "malformed", `\\ for a backslash`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := new(problems)
			fieldCollector{problems: p}.fieldsOf(reflect.StructOf(tc.fields), position{goName: "x.T"})
			err := errors.Join(p.all...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestCamel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Image": "image", "ImageName": "imageName", "URLPath": "urlPath", "ID": "id", "X": "x", "PodCIDRs": "podCIDRs",
	} {
		if got := camel(name); got != want {
			t.Errorf("camel(%q) = %q, want %q", name, got, want)
		}
	}
}
