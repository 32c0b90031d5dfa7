package tree_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// scattered lists the types whose methods stand in more than one file, with the reason. A type outside
// of the list, and a type in the list whose methods stand in one file, fail TestTypesStandInOneFile. The
// list only becomes shorter.
var scattered = map[string]string{}

// wide lists the public types whose methods are their API. Their methods may stand in several files.
var wide = map[string]string{
	"kube.API":                "its methods are the calls of a kind: reads and constructors in api.go, writes in api_write.go",
	"yaretest.Cluster":        "its methods are what a test asks of a cluster, each in the file of its subject",
	"yaretest.ServiceAccount": "its methods are what a test asks of an account",
}

// TestTypesStandInOneFile checks that the methods of each type stand in one file. An unexported function
// counts as a method if its first parameter is of the type and if the function uses an unexported field
// of the type. Files for platforms, such as clock_linux.go and clock_other.go, count as one file with
// clock.go.
func TestTypesStandInOneFile(t *testing.T) {
	enterRoot()
	found := scatteredTypes(t)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if scattered[name] == "" && wide[name] == "" {
			t.Errorf("the methods of %s stand in %d files: %s", name, len(found[name]), strings.Join(found[name], ", "))
		}
	}
	for name := range scattered {
		if len(found[name]) == 0 {
			t.Errorf("the methods of %s stand in one file: delete its entry in scattered", name)
		}
	}
	t.Logf("%d types have methods in several files", len(found))
}

// scatteredTypes returns the files of each type whose methods stand in several files, by the folder of
// the type and its name, such as "kube.API".
func scatteredTypes(t *testing.T) map[string][]string {
	t.Helper()
	packages := map[string]map[string]*ast.File{} // by folder, then by file
	for _, name := range filesOfGit(t, "*.go") {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(name)
		if packages[dir] == nil {
			packages[dir] = map[string]*ast.File{}
		}
		packages[dir][path.Base(name)] = file
	}
	found := map[string][]string{}
	for dir, files := range packages {
		fields := unexportedFields(files)
		where := map[string]map[string]bool{} // the files of a type
		for name, file := range files {
			for _, declaration := range file.Decls {
				f, ok := declaration.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if owner := methodOwner(f, fields); owner != "" {
					if where[owner] == nil {
						where[owner] = map[string]bool{}
					}
					where[owner][withoutPlatform(name)] = true
				}
			}
		}
		for owner, in := range where {
			if len(in) > 1 {
				found[dir+"."+owner] = slices.Sorted(maps.Keys(in))
			}
		}
	}
	return found
}

// unexportedFields returns the names of the unexported fields of the struct types of a package, by type.
func unexportedFields(files map[string]*ast.File) map[string]map[string]bool {
	fields := map[string]map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				names := map[string]bool{}
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						if !name.IsExported() {
							names[name.Name] = true
						}
					}
				}
				fields[spec.Name.Name] = names
			}
			return true
		})
	}
	return fields
}

// methodOwner returns the name of the type whose method f is, or counts as. It returns "" if f is no
// method.
func methodOwner(f *ast.FuncDecl, fields map[string]map[string]bool) string {
	if f.Recv != nil {
		return typeName(f.Recv.List[0].Type)
	}
	if f.Name.IsExported() || f.Body == nil || len(f.Type.Params.List) == 0 {
		return ""
	}
	first := f.Type.Params.List[0]
	owner := typeName(first.Type)
	if len(first.Names) == 0 || fields[owner] == nil {
		return ""
	}
	uses := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, ok := s.X.(*ast.Ident)
			uses = uses || ok && x.Name == first.Names[0].Name && fields[owner][s.Sel.Name]
		}
		return !uses
	})
	if !uses {
		return ""
	}
	return owner
}

// typeName returns the name of a type of this package, without its pointer and type parameters. It
// returns "" for other types.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// withoutPlatform returns the name of a Go file without its platform: "clock_linux.go" and
// "clock_other.go" become "clock.go".
func withoutPlatform(name string) string {
	base := strings.TrimSuffix(name, ".go")
	for _, platform := range []string{"linux", "darwin", "windows", "other", "unix"} {
		base = strings.TrimSuffix(base, "_"+platform)
	}
	return fmt.Sprintf("%s.go", base)
}
