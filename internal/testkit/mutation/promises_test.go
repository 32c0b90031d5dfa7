package mutation

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// testGroup is a group of tests of one package with the same needs.
type testGroup struct {
	// dir is the folder of the package, with slashes.
	dir   string
	tests []string
	cost  cost
	// unneeded are the test files of the package that need a server, if these tests do not. Without them the
	// tests compile without yaretest and all of its imports. These imports are most of yare.
	unneeded []string
}

// cost is what tests need.
type cost int

const (
	// cheap tests need nothing but their package.
	cheap cost = iota
	// model is the cost of TestProgram, which runs for a minute.
	model
	// server is the cost of tests on a real API server.
	server
)

// modelDir is the folder of TestProgram, the model of a whole program.
const modelDir = "internal/testkit/programmodel"

// readPromises returns the tests of each promise of docs/guarantees.md. A test that the page names without
// its package stands for each test of the same name.
func readPromises(module fs.FS) (map[int][]testGroup, error) {
	page, err := fs.ReadFile(module, "docs/guarantees.md")
	if err != nil {
		return nil, err
	}
	found, ofServer, err := findTests(module)
	if err != nil {
		return nil, err
	}
	promises := make(map[int][]testGroup)
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|.*$`).FindAllStringSubmatch(string(page), -1) {
		number, err := strconv.Atoi(row[1])
		if err != nil {
			return nil, err
		}
		names := regexp.MustCompile(`\b(?:\w+\.)?Test[A-Z]\w*`).FindAllString(row[0], -1)
		if slices.Contains([]int{2, 3, 7, 8, 11, 12, 17}, number) { // as the page says
			names = append(names, path.Base(modelDir)+".TestProgram")
		}
		groups, err := groupTests(found, names)
		if err != nil {
			return nil, fmt.Errorf("promise %d: %w", number, err)
		}
		for i, g := range groups {
			if g.cost != server {
				groups[i].unneeded = ofServer[g.dir]
			}
		}
		promises[number] = groups
	}
	if len(promises) == 0 {
		return nil, errors.New("docs/guarantees.md has no promises")
	}
	return promises, nil
}

// location is where a test is.
type location struct {
	dir  string
	cost cost
}

// groupTests returns the tests of these names in groups.
func groupTests(found map[string][]location, names []string) ([]testGroup, error) {
	tests := make(map[location][]string)
	for _, name := range names {
		if len(found[name]) == 0 {
			return nil, fmt.Errorf("the test %s does not exist", name)
		}
		short := name[strings.LastIndexByte(name, '.')+1:]
		for _, p := range found[name] {
			if !slices.Contains(tests[p], short) {
				tests[p] = append(tests[p], short)
			}
		}
	}
	var groups []testGroup
	for p, names := range tests {
		groups = append(groups, testGroup{dir: p.dir, tests: names, cost: p.cost})
	}
	return groups, nil
}

// findTests returns the places of all tests of the module, by their names and by their names after the name
// of their folder, and the test files that need a server, by their folders.
func findTests(module fs.FS) (found map[string][]location, ofServer map[string][]string, err error) {
	found, ofServer = make(map[string][]location), make(map[string][]string)
	err = fs.WalkDir(module, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipFolder(module, name)
		}
		if !strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_go127_test.go") { // a parser of Go 1.26 cannot read the latter
			return nil
		}
		text, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p := location{path.Dir(name), costOf(name, file)}
		if p.cost == server {
			ofServer[p.dir] = append(ofServer[p.dir], name)
		}
		for _, declaration := range file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			for _, key := range []string{f.Name.Name, path.Base(p.dir) + "." + f.Name.Name} {
				found[key] = append(found[key], p)
			}
		}
		return nil
	})
	return found, ofServer, err
}

// skipFolder returns fs.SkipDir for a folder that the go command would ignore, or for a module of its own.
func skipFolder(module fs.FS, name string) error {
	if name == "." {
		return nil
	}
	base := path.Base(name)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(module, name+"/go.mod"); err == nil {
		return fs.SkipDir
	}
	return nil
}

// costOf returns the cost of the tests in a file.
func costOf(name string, file *ast.File) cost {
	usesServer := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		return strings.HasSuffix(i.Path.Value, `/yaretest"`) || strings.HasSuffix(i.Path.Value, `/internal/testkit/gadget"`)
	})
	switch {
	case usesServer:
		return server
	case strings.HasSuffix(name, "_integration_test.go"), strings.HasPrefix(name, "examples/"), strings.HasPrefix(name, "cmd/"):
		return server
	case path.Dir(name) == modelDir:
		return model
	}
	return cheap
}

// inOrder returns the groups in the order in which they are run: cheap groups first, and among these the
// package of the changed file first.
func inOrder(groups []testGroup, changedDir string, withServer bool) []testGroup {
	chosen := slices.DeleteFunc(slices.Clone(groups), func(g testGroup) bool { return g.cost == server && !withServer })
	slices.SortFunc(chosen, func(a, b testGroup) int {
		isOther := func(g testGroup) int {
			if g.dir == changedDir {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(isOther(a), isOther(b)), cmp.Compare(a.dir, b.dir))
	})
	return chosen
}

func TestPromisesHaveTheirTests(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	promises, err := readPromises(fstest.MapFS{
		"docs/guarantees.md":      file("| | promise | tests |\n| 1 | It works. | `TestA`, `b.TestModel`; `TestReal` (server) |\n| 2 | All. | `TestA` |\n"),
		"a/a_test.go":             file("package a\nfunc TestA(t *testing.T) {}\nfunc TestModel(t *testing.T) {}\n"),
		"b/b_test.go":             file("package b\nfunc TestModel(t *testing.T) {}\n"),
		"b/b_integration_test.go": file("package b\nfunc TestReal(t *testing.T) {}\n"),
		"other/go.mod":            file("module other\n"),
		"other/other_test.go":     file("package other\nfunc TestA(t *testing.T) {}\n"),
		"internal/testkit/programmodel/program_test.go": file("package programmodel\nfunc TestProgram(t *testing.T) {}\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		promise    int
		dir        string
		withServer bool
		want       []string
	}{
		{1, "b", true, []string{"b TestModel", "a TestA", "b TestReal"}},
		{1, "a", false, []string{"a TestA", "b TestModel"}},
		{2, "b", true, []string{"a TestA", "internal/testkit/programmodel TestProgram"}},
	} {
		var got []string
		for _, g := range inOrder(promises[c.promise], c.dir, c.withServer) {
			for _, test := range g.tests {
				got = append(got, g.dir+" "+test)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("promise %d is tested by %q, not %q", c.promise, got, c.want)
		}
	}
}
