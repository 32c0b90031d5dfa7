package crd

import (
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestSourceIsRead compares the comments that are read from a source with the expected ones, by the kind of
// the declaration.
func TestSourceIsRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text             string
		types, fields, aliases map[string]string
	}{
		{
			name:   "a comment that a blank line follows",
			text:   "// Doc.\n\ntype described struct {\n// Lead.\n\nX int // Line.\n// Y.\nY, Z int // No.\n}",
			types:  map[string]string{"described": ""},
			fields: map[string]string{"described.X": "Line.", "described.Y": "Y.", "described.Z": "Y."},
		},
		{
			name: "a group",
			text: "// Group.\ntype (\n// A.\ndescribed struct { X int /* x */ }\n\n// Not B.\n\nB []struct { Y *map[string][3]struct { Z int // z\n} // y\n}\n)",
			types: map[string]string{
				"described": "A.", "B": "",
			},
			fields: map[string]string{"described.X": "", "B.Y": "y", "B.Y.Z": "z"},
		},
		{
			name:  "embedded fields, and several names",
			text:  "type described[T any] struct { *B; C[int]; p.D; *p.E[int, string]; G []int; I, J struct { K int // k\n} }",
			types: map[string]string{"described": ""},
			fields: map[string]string{
				"described.B": "", "described.C": "", "described.D": "", "described.E": "", "described.G": "",
				"described.I": "", "described.J": "", "described.I.K": "k", "described.J.K": "k",
			},
		},
		{
			name: "types that are no structs",
			text: "type described struct { X func(struct { Y int }) struct { Z int } `json:\"x\"` // x\n Y interface { M() } // y\n C chan struct { No int }\n}\n" +
				"func f() { type L struct { X int } }\nvar V = struct { X int }{1}",
			types:  map[string]string{"described": ""},
			fields: map[string]string{"described.X": "x", "described.Y": "y", "described.C": ""},
		},
		{
			name: "custom resources",
			text: "// W.\ntype W = kube.CustomResource[described, Status]\n// B.\ntype B CustomResource[*p.Spec2, struct{ X int },]\n" +
				"type C kube.CustomResource[Spec3]\ntype D CustomResource[map[string]int, X]\ntype described int",
			types:   map[string]string{"W": "W.", "B": "B.", "C": "", "D": "", "described": ""},
			fields:  map[string]string{},
			aliases: map[string]string{"described": "W.", "Spec2": "B.", "_": ""},
		},
		{
			name:   "comments of several lines, on the line of the next token, and directives",
			text:   "/* A\n*/ type described struct { /* x */ X int; // x\nY int; /* y */ Z int\n//go:generate no\n// w\nW int //nolint:all // w\n}",
			types:  map[string]string{"described": ""},
			fields: map[string]string{"described.X": "x", "described.Y": "", "described.Z": "", "described.W": "w"},
		},
		{
			name:   "two declarations of one name",
			text:   "// First.\ntype described struct {\n// X.\nX int }\n// Second.\ntype described struct {\n// Y.\nY int }",
			types:  map[string]string{"described": "First."},
			fields: map[string]string{"described.X": "X."},
		},
	} {
		got := comments{types: map[string]string{}, fields: map[string]string{}, aliases: map[string]string{}, positions: map[string]string{}}
		source := fstest.MapFS{"a.go": {Data: []byte("package crd\n" + tc.text)}}
		if err := got.readPackage(source, reflect.TypeFor[described]()); err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if tc.aliases == nil {
			tc.aliases = map[string]string{}
		}
		want := comments{types: tc.types, fields: tc.fields, aliases: tc.aliases, positions: got.positions}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(comments{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// FuzzSource checks that any file is read, or is an error.
func FuzzSource(f *testing.F) {
	for _, text := range []string{
		"", "package", "package crd; type", "package crd; type (", "package crd; type described struct {",
		"package crd; type described struct { X struct {", "package crd; type A[", "package crd; type A CustomResource[",
		"package crd\n/*", "package crd; type described struct { X int; /*", "package crd; type A, B (",
		"package crd\ntype described (struct{ X int })", "package crd\ntype ()\nvar (\n)",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		read := comments{types: map[string]string{}, fields: map[string]string{}, aliases: map[string]string{}, positions: map[string]string{}}
		if err := read.readPackage(fstest.MapFS{"any.go": {Data: text}}, reflect.TypeFor[described]()); err != nil && err.Error() == "" {
			t.Error("the error has no text")
		}
	})
}
