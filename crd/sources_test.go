package crd

import (
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/yare-go/yare/kube"
)

type described struct{}

// A test file can declare a type again, with a comment for tests.
func TestCommentsAreNotTakenFromTests(t *testing.T) {
	t.Parallel()
	source := fstest.MapFS{
		"a_test.go": {Data: []byte("package crd\n\n// Wrong.\ntype described struct{}\n")},
		"b.go":      {Data: []byte("package crd\n\n// Right.\ntype described struct{}\n")},
	}
	typ := reflect.TypeFor[described]()
	s := sourcesOf(kube.Type{Go: typ, Definition: &kube.Definition{Source: source}}, func(err error) { t.Error(err) })
	if got := s.commentOfType(typ); got != "Right." {
		t.Errorf("the comment is %q", got)
	}
}

// Markers for tools were taken for text if they were indented, as in a list.
func TestFoldLeavesMarkersOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A.\n+optional\n":                     "A.",
		"A.\n  +kubebuilder:default=1\nB.\n":  "A. B.",
		"A:\n  - one\n    +optional\n  - two": "A:\n- one\n- two",
		"A.\n\n\t+k8s:required\n":             "A.",
		"1 + 1\n":                             "1 + 1",
	} {
		if got := descriptionOf(text); got != want {
			t.Errorf("descriptionOf(%q) = %q, want %q", text, got, want)
		}
	}
}
