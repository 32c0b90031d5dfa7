package faults

import "testing"

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
			if path, first, then := firstChange("", test.before, test.after); path != test.path || first != test.first || then != test.then {
				t.Errorf("it is %q: %s and %s", path, first, then)
			}
		})
	}
}
