package tree_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// publicPackages returns the folders of the packages that other modules can import, in all modules of this
// repository: no commands, nothing below internal and lab, and not the code that pages show.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var folders []string
	for _, name := range filesOfGit(t, "*.go") {
		folder := path.Dir(name)
		inside := "/" + folder + "/"
		if strings.HasSuffix(name, "_test.go") || slices.Contains(folders, folder) || strings.HasPrefix(name, ".") ||
			strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "lab/") ||
			strings.Contains(inside, "/internal/") || strings.Contains(inside, "/testdata/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if file.Name.Name != "main" {
			folders = append(folders, folder)
		}
	}
	return folders
}

// TestExportedNames compares the exported names with docs/api.txt, so that a review sees each
// addition and each change. UPDATE_API=1 go test ./internal/testkit/tree -run TestExportedNames writes the file.
func TestExportedNames(t *testing.T) {
	t.Parallel()
	enterRoot()
	var names []string
	for _, folder := range publicPackages(t) {
		names = append(names, exportedNames(t, folder)...)
	}
	slices.Sort(names)
	got := strings.Join(names, "\n") + "\n"
	const file = "docs/api.txt"
	if os.Getenv("UPDATE_API") != "" {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the exported names are not those in %s: UPDATE_API=1 go test ./internal/testkit/tree -run TestExportedNames writes the file (-want +got):\n%s", file, diff)
	}
}

// The largest numbers of exported names, for authors of operators and for authors of handlers. They only become
// smaller, unless a feature is added.
const (
	maxAuthorNames  = 439 // 3 are sets of children and generated values, 7 are the readiness of objects, 5 are profiles and metrics of other libraries, 3 are webhooks for kinds of others, 2 are admission policies, 3 are reconcilers of controller-runtime, kubebuilder's flags and objects that are being deleted, 5 are managers of controller-runtime, 1 are warnings about clients in other languages, 1 is a version of Kubernetes for tests, 1 is the live page, 2 are converters and their check, 4 are proofs of permissions, 9 are webhooks and policies
	maxHandlerNames = 56
)

// TestNumberOfNames counts the exported names: constants, variables, types, functions and methods. Fields do not
// count, and neither do the methods that fmt, errors, log/slog and the runtime package of apimachinery ask for.
func TestNumberOfNames(t *testing.T) {
	t.Parallel()
	enterRoot()
	authorNames, handlerNames := 0, 0
	for _, folder := range publicPackages(t) {
		count := len(countedNames(t, folder))
		t.Logf("%4d %s", count, folder)
		if folder == "kube/wire" {
			handlerNames += count
		} else {
			authorNames += count
		}
	}
	if authorNames > maxAuthorNames || handlerNames > maxHandlerNames {
		t.Errorf("%d exported names for authors of operators, and %d for authors of handlers: more than %d and %d",
			authorNames, handlerNames, maxAuthorNames, maxHandlerNames)
	}
}

// exportedName is an exported name that counts.
type exportedName struct {
	folder   string // of its package
	owner    string // the type of a method, or ""
	name     string
	declared string // the declaration without its package
}

func (n exportedName) String() string {
	return strings.TrimSuffix(n.folder+"."+n.owner, ".") + "." + n.name
}

var (
	functionName  = regexp.MustCompile(`^func \((?:\w+ )?\*?(\w+)[^)]*\) (\w+)`)
	interfaceName = regexp.MustCompile(`^type (\w+) interface: (\w+)\(`)
	packageName   = regexp.MustCompile(`^(?:func|type|const|var) (\w+)`)
	forOthers     = regexp.MustCompile(`^(String|GoString|Format|Error|Unwrap|Is|As|LogValue|DeepCopyObject|GetObjectKind)$`)
)

// countedNames returns the exported names of the package in a folder that count.
func countedNames(t *testing.T, folder string) (names []exportedName) {
	for _, line := range exportedNames(t, folder) {
		n := exportedName{folder: folder, declared: strings.TrimPrefix(line, folder+": ")}
		member := functionName.FindStringSubmatch(n.declared)
		if member == nil {
			member = interfaceName.FindStringSubmatch(n.declared)
		}
		switch {
		case member != nil:
			n.owner, n.name = member[1], member[2]
		case strings.Contains(n.declared, " struct: "), strings.Contains(n.declared, " interface: "):
			continue // a field, or an embedded interface
		default:
			n.name = packageName.FindStringSubmatch(n.declared)[1]
		}
		if n.owner == "" || !forOthers.MatchString(n.name) {
			names = append(names, n)
		}
	}
	return names
}

// exportedNames returns a line for each exported name of the package in a folder: its package, and
// its declaration without comments.
func exportedNames(t *testing.T, folder string) (names []string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	inOneLine := strings.NewReplacer("( ", "(", ", )", ")") // a list of parameters may have lines of its own
	add := func(format string, args ...any) {
		declaration := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
		names = append(names, folder+": "+inOneLine.Replace(declaration))
	}
	text := func(node any) string {
		var b bytes.Buffer
		if err := printer.Fprint(&b, set, node); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || hasExportedReceiver(d)) {
					add("%s", text(&ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type}))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(add, text, d.Tok, spec)
				}
			}
		}
	}
	return names
}

func hasExportedReceiver(d *ast.FuncDecl) bool {
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok && !exported {
			exported = name.IsExported()
			return false
		}
		return true
	})
	return exported
}

// addSpec adds the exported names of a type, a constant or a variable.
func addSpec(add func(format string, args ...any), text func(node any) string, keyword token.Token, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			switch {
			case !name.IsExported():
			case s.Type != nil:
				add("%s %s %s", keyword, name, text(s.Type))
			default:
				add("%s %s", keyword, name)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		parameters := ""
		if s.TypeParams != nil {
			var list []string
			for _, p := range s.TypeParams.List {
				for _, name := range p.Names {
					list = append(list, name.Name+" "+text(p.Type))
				}
			}
			parameters = "[" + strings.Join(list, ", ") + "]"
		}
		fields, what := (*ast.FieldList)(nil), ""
		switch definition := s.Type.(type) {
		case *ast.StructType:
			fields, what = definition.Fields, "struct"
		case *ast.InterfaceType:
			fields, what = definition.Methods, "interface"
		}
		if fields == nil {
			assign := ""
			if s.Assign.IsValid() {
				assign = "= "
			}
			add("type %s%s %s%s", s.Name, parameters, assign, text(s.Type))
			return
		}
		add("type %s%s %s", s.Name, parameters, what)
		for _, field := range fields.List {
			if name, ok := field.Type.(*ast.Ident); len(field.Names) == 0 && !(ok && !name.IsExported()) {
				add("type %s %s: %s", s.Name, what, text(field.Type))
			}
			for _, name := range field.Names {
				if signature, ok := field.Type.(*ast.FuncType); ok && what == "interface" && name.IsExported() {
					add("type %s %s: %s%s", s.Name, what, name, strings.TrimPrefix(text(signature), "func"))
				} else if name.IsExported() {
					add("type %s %s: %s %s", s.Name, what, name, text(field.Type))
				}
			}
		}
	}
}
