package crd

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSourceIsReadAsByGoParser compares the comments of the standard library, of this module and
// of made-up files with the comments that go/parser finds.
func TestSourceIsReadAsByGoParser(t *testing.T) {
	t.Parallel()
	for i, text := range oddSources {
		compareWithParser(t, "odd "+string(rune('a'+i)), []byte("package p\n"+text))
	}
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src")
	files := 0
	for _, folder := range []string{"..", std + "/go", std + "/net", std + "/crypto", std + "/encoding", std + "/reflect", std + "/runtime", std + "/database", std + "/testing"} {
		err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			if entry.IsDir() || filepath.Ext(name) != ".go" {
				return nil
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			compareWithParser(t, name, text)
			files++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 500 {
		t.Errorf("only %d files were compared", files)
	}
}

// oddSources are declarations that are easily misread.
var oddSources = []string{
	"type A struct{}; type B struct { X int }; type C = A",
	"// Doc.\n\ntype A struct {\n// Lead.\n\nX int // Line.\n// Y.\nY, Z int // No.\n}",
	"// Group.\ntype (\n// A.\nA struct { X int /* x */ }\n\n// Not B.\n\nB []struct { Y *map[string][3]struct { Z int // z\n} // y\n}\n)",
	"type A[T any, U interface{ ~int }] struct { *B; C[int]; p.D; *p.E[int, string]; F [3]int; G []int; H [N]struct{ X int }; I, J struct { K int // k\n} }",
	"type A struct { X func(struct { Y int }) struct { Z int } `json:\"x\"` // x\n Y interface { M() } // y\n C chan struct { No int }\n}",
	"type A = kube.CustomResource[Spec, Status]\n// B.\ntype B CustomResource[*p.Spec2, struct{ X int },]\ntype C kube.CustomResource[Spec3]\ntype D CustomResource[map[string]int, X]",
	"func f() { type L struct { X int }; switch x.(type) {} }\n// A.\ntype A struct { X int; // x\nY int; /* y */ Z int }",
	"/* A\n*/ type A struct { /* x */ X int\n/* y\n*/\nY int\n//go:generate no\n// z\nZ int //nolint:all // z\n}\nvar V = struct { X int }{1}",
	"type A struct {\n// e\nE `tag` // e2\n*F `tag` // f\n\n// last\n}",
	"type A [2][]*struct { X int }\ntype B [len(struct{ Y int }{}.Y)]struct { Z int }\ntype C map[struct{ K int }]struct { V int }",
	"type A struct { X int } // after\n// lead\ntype B int // line",
	"type ()\ntype A (struct{ X int })\ntype B struct { X (struct { Y int }) }",
}

func compareWithParser(t *testing.T, name string, text []byte) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return // it is meant to be wrong
	}
	want := comments{types: map[string]string{}, fields: map[string]string{}, aliases: map[string]string{}, positions: map[string]string{}}
	want.readParsed(files, file)
	source, err := readSource(name, text, file.Name.Name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	got := comments{types: map[string]string{}, fields: map[string]string{}, aliases: map[string]string{}, positions: map[string]string{}}
	got.read(source)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(comments{})); diff != "" {
		t.Errorf("%s: differs from go/parser (-):\n%s", name, diff)
	}
}

// FuzzSource compares the comments of any file with the comments that go/parser finds.
func FuzzSource(f *testing.F) {
	for _, text := range oddSources {
		f.Add([]byte("package p\n" + text))
	}
	for _, text := range []string{"", "package", "package p; type", "package p; type (", "package p; type A struct {", "package p; type A struct { X struct {", "package p; type A[", "package p; type A CustomResource[", "package p\n/*", "package p; type A struct { X int; /*", "package p; type A, B ("} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = readSource("any.go", text, "p") // it must come to an end
		compareWithParser(t, "any.go", text)
	})
}

// typeSpecs returns a sequence of the types that file declares, with their comments.
func typeSpecs(file *ast.File) iter.Seq2[*ast.TypeSpec, *ast.CommentGroup] {
	return func(yield func(*ast.TypeSpec, *ast.CommentGroup) bool) {
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				spec, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				doc := spec.Doc
				if doc == nil && !group.Lparen.IsValid() {
					doc = group.Doc
				}
				if !yield(spec, doc) {
					return
				}
			}
		}
	}
}

// readParsed adds the declarations of one file. If two have the same name, as for two operating
// systems, the first declaration counts.
func (c *comments) readParsed(files *token.FileSet, file *ast.File) {
	position := func(node ast.Node) string {
		return fmt.Sprintf("%s:%d", files.File(node.Pos()).Name(), files.Position(node.Pos()).Line)
	}
	for spec, doc := range typeSpecs(file) {
		if name := specOfAlias(spec.Type); name != "" && c.aliases[name] == "" {
			c.aliases[name] = descriptionOf(doc.Text())
		}
		if _, twice := c.types[spec.Name.Name]; !twice {
			c.types[spec.Name.Name] = descriptionOf(doc.Text())
			c.positions[file.Name.Name+"."+spec.Name.Name] = position(spec)
			c.readParsedFields(spec.Name.Name, spec.Type, func(name string, field ast.Node) {
				c.positions[file.Name.Name+"."+name] = position(field)
			})
		}
	}
}

// readParsedFields adds the fields of a struct, and of structs without a name within it.
func (c *comments) readParsedFields(name string, expr ast.Expr, found func(name string, field ast.Node)) {
	switch t := expr.(type) {
	case *ast.StarExpr:
		c.readParsedFields(name, t.X, found)
	case *ast.ArrayType:
		c.readParsedFields(name, t.Elt, found)
	case *ast.MapType:
		c.readParsedFields(name, t.Value, found)
	case *ast.StructType:
		for _, f := range t.Fields.List {
			text := descriptionOf(f.Doc.Text())
			if text == "" {
				text = descriptionOf(f.Comment.Text())
			}
			names := f.Names
			if len(names) == 0 {
				names = []*ast.Ident{embeddedName(f.Type)}
			}
			for _, n := range names {
				c.fields[name+"."+n.Name] = text
				found(name+"."+n.Name, f)
				c.readParsedFields(name+"."+n.Name, f.Type, found)
			}
		}
	}
}

// embeddedName returns the name that an embedded field has by its type.
func embeddedName(expr ast.Expr) *ast.Ident {
	switch t := expr.(type) {
	case *ast.Ident:
		return t
	case *ast.StarExpr:
		return embeddedName(t.X)
	case *ast.SelectorExpr:
		return t.Sel
	case *ast.IndexExpr:
		return embeddedName(t.X)
	case *ast.IndexListExpr:
		return embeddedName(t.X)
	}
	return ast.NewIdent("_")
}

// specOfAlias returns the name of the spec in kube.CustomResource[Spec, Status]. It is empty
// for other types.
func specOfAlias(expr ast.Expr) string {
	list, ok := expr.(*ast.IndexListExpr)
	if !ok || len(list.Indices) != 2 || embeddedName(list.X).Name != "CustomResource" {
		return ""
	}
	return embeddedName(list.Indices[0]).Name
}
