package faults

import (
	"strings"
	"testing"
)

func TestFirstChange(t *testing.T) {
	t.Parallel()
	object := func(label, text string, size any) map[string]any {
		return map[string]any{"metadata": map[string]any{"labels": label}, "spec": map[string]any{"text": text, "size": size}}
	}
	for _, test := range []struct {
		name              string
		before, after     any
		path, first, then string
	}{
		{"the same", object("a", "b", nil), object("a", "b", nil), "", "", ""},
		{"a field", object("a", "b", nil), object("a", "c", nil), "spec.text", `"b"`, `"c"`},
		{"a field and the metadata", object("a", "b", 1), object("b", "b", 2), "spec.size", "1", "2"},
		{"the metadata alone", object("a", "b", 1), object("b", "b", 1), "metadata.labels", `"a"`, `"b"`},
		{"a field that goes", object("a", "b", 1), object("a", "b", nil), "spec.size", "1", "nothing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := fieldChange{test.path, test.first, test.then}
			if got, isChanged := firstChange("", test.before, test.after); got != want || isChanged != (want != fieldChange{}) {
				t.Errorf("it is %+v, want %+v", got, want)
			}
		})
	}
}

// Values whose texts are cut to the same beginning are different values.
func TestFirstChangeAfterTheShownPart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 2*maxShownValue)
	change, isChanged := firstChange("", map[string]any{"text": long + "b"}, map[string]any{"text": long + "c"})
	if !isChanged || change.path != "text" {
		t.Errorf("it is %+v, changed %t", change, isChanged)
	}
}
