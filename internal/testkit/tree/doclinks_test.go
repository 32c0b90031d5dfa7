package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docLink is a link in a comment: a name in brackets. Its groups are the package, which may be missing, and the name.
var docLink = regexp.MustCompile(`(?:^|[\s("])\[\*?(?:([a-z]\w*)\.)?([A-Z]\w*(?:\.[A-Z]\w*)?)\]`)

// TestLinksOfComments checks that each link of a comment leads to a declared name, or to an import from elsewhere.
func TestLinksOfComments(t *testing.T) {
	t.Parallel()
	enterRoot()
	const module = "github.com/yare-go/yare"
	indented := regexp.MustCompile(`(?m)^\t.*$`)                            // code has no links
	set, comments := token.NewFileSet(), make(map[*ast.CommentGroup]string) // the import path of the package
	declared, imported := make(map[string]bool), make(map[string]string)    // by import path and name
	for _, file := range filesOfGit(t, "*.go") {
		f, _ := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution) // vet reports errors
		pkg := path.Join(module, path.Dir(file))
		imported[pkg+" "+strings.TrimSuffix(f.Name.Name, "_test")] = pkg
		for _, spec := range f.Imports {
			target, _ := strconv.Unquote(spec.Path.Value)
			imported[pkg+" "+path.Base(target)] = target
		}
		for _, c := range f.Comments {
			comments[c] = pkg
		}
		for _, name := range declaredNames(f) {
			declared[pkg+" "+name] = true
		}
	}
	for c, pkg := range comments {
		for _, link := range docLink.FindAllStringSubmatch(indented.ReplaceAllString(c.Text(), ""), -1) {
			target := pkg
			if link[1] != "" {
				target = imported[pkg+" "+link[1]]
			}
			if (target == "" || strings.HasPrefix(target, module)) && !declared[target+" "+link[2]] {
				t.Errorf("%s: [%s.%s] is no declared name: correct the link, or import its package", set.Position(c.Pos()), link[1], link[2])
			}
		}
	}
}

// declaredNames returns the names that f declares: API, a method such as API.Get, a field such as Config.Host.
func declaredNames(f *ast.File) (names []string) {
	owner := ""
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name.Name)
			if n.Recv != nil {
				names = append(names, typeName(n.Recv.List[0].Type)+"."+n.Name.Name)
			}
		case *ast.TypeSpec:
			owner = n.Name.Name + "."
			names = append(names, n.Name.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names[0].Name)
		case *ast.Field:
			for _, name := range n.Names {
				names = append(names, owner+name.Name)
			}
		}
		return true
	})
	return names
}
