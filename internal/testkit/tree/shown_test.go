package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestEachNameIsShown checks that each exported name that counts stands in code that shows its use: in the code of the
// guide, in the examples, in the template of yare new, or in an Example. A file with Examples may have types and
// functions that they need. A method is found by its name alone, because types are not checked here.
func TestEachNameIsShown(t *testing.T) {
	t.Parallel()
	enterRoot()
	shown := shownNames(t)
	for _, folder := range publicPackages(t) {
		for _, n := range countedNames(t, folder) {
			key := n.folder + "." + n.name
			if n.owner != "" {
				key = "." + n.name
			}
			if !shown[key] {
				t.Errorf("no page and no Example shows %s: write one that says what it is for", n)
			}
		}
	}
}

// TestExamplesSayWhy checks that each Example has a comment.
func TestExamplesSayWhy(t *testing.T) {
	t.Parallel()
	enterRoot()
	for name, file := range filesOfExamples(t) {
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && isExample(f) && f.Doc.Text() == "" {
				t.Errorf("%s: %s has no comment that says what it shows", name, f.Name)
			}
		}
	}
}

// TestOptionsAreInTheGuide checks that a page of the guide names each function that returns an option or a predicate.
func TestOptionsAreInTheGuide(t *testing.T) {
	t.Parallel()
	enterRoot()
	var pages strings.Builder
	for _, name := range filesOfGit(t, "docs/guide/*.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(text)
	}
	isOption := regexp.MustCompile(`\) (\w*Option|Predicate|Selector)$|^func \w+\(c Change\) bool$`)
	count := 0
	for _, folder := range publicPackages(t) {
		for _, n := range countedNames(t, folder) {
			if n.owner != "" || !isOption.MatchString(n.declared) {
				continue
			}
			count++
			if !regexp.MustCompile(`\b` + n.name + `\b`).MatchString(pages.String()) {
				t.Errorf("no page of the guide names the option %s", n)
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d options were found", count)
	}
}

// shownNames returns what the pages and the Examples use: "kube.Get" for a name of a package, by the folder of the
// package, and ".Modify" for a method.
func shownNames(t *testing.T) map[string]bool {
	t.Helper()
	const module = "github.com/yare-go/yare/"
	shown := map[string]bool{}
	for _, file := range filesOfExamples(t) {
		folders := map[string]string{} // of the packages, by their names in the file
		for _, spec := range file.Imports {
			if folder, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ok {
				folders[path.Base(folder)] = folder
			}
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv != nil {
				shown["."+f.Name.Name] = true // it implements an interface
			}
			ast.Inspect(declaration, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					shown["."+s.Sel.Name] = true
					if x, ok := s.X.(*ast.Ident); ok && folders[x.Name] != "" {
						shown[folders[x.Name]+"."+s.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	return shown
}

// filesOfExamples returns the files of the guide's code, of the examples and of the template, and the files with
// Examples in their names. Another file with an Example has only that Example.
func filesOfExamples(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, name := range filesOfGit(t, "*.go") {
		isCode := strings.HasPrefix(name, "docs/guide/code/") || strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "cmd/yare/template/")
		isExampleFile := strings.HasPrefix(path.Base(name), "example") && strings.HasSuffix(name, "_test.go")
		if !isCode && !strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_go127_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if !isCode && !isExampleFile {
			var examples []ast.Decl
			for _, declaration := range file.Decls {
				if f, ok := declaration.(*ast.FuncDecl); ok && isExample(f) {
					examples = append(examples, f)
				}
			}
			file.Decls = examples
		}
		if len(file.Decls) > 0 {
			files[name] = file
		}
	}
	return files
}

func isExample(f *ast.FuncDecl) bool {
	return f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example") && f.Type.Params.NumFields() == 0
}
