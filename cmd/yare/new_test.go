package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yare-go/yare/internal/plane"
)

// The program of each project has a name that Kubernetes accepts, whatever the folder is called.
func TestNameOfTheProgramOfAProject(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"web-app": "web-app", "myHTTP_proxy": "myhttp-proxy", "9 lives": "lives", "42": "cat", "-x-": "x",
		strings.Repeat("a", 49) + "-b": strings.Repeat("a", 49), "größe": "gr--e",
	} {
		if got := programNameOf(project{Name: name, Kind: "Cat"}); got != want {
			t.Errorf("the name for %q is %q, not %q", name, got, want)
		}
	}
}

func TestNamesOfAProject(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		project project
		want    project // without Dir
		problem string
	}{
		"simple":        {project: project{Dir: "x"}, want: project{Name: "x", Module: "example.com/x", Kind: "X"}},
		"words":         {project: project{Dir: "../a/web-app"}, want: project{Name: "web-app", Module: "example.com/web-app", Kind: "WebApp"}},
		"operator":      {project: project{Dir: "backup-operator"}, want: project{Name: "backup-operator", Module: "example.com/backup-operator", Kind: "Backup"}},
		"case is kept":  {project: project{Dir: "myHTTP_proxy"}, want: project{Name: "myHTTP_proxy", Module: "example.com/myHTTP_proxy", Kind: "MyHTTPProxy"}},
		"set by flags":  {project: project{Dir: "9 lives", Module: "cats.org/lives", Kind: "Cat"}, want: project{Name: "9 lives", Module: "cats.org/lives", Kind: "Cat"}},
		"bad kind":      {project: project{Dir: "9lives"}, problem: "--kind"},
		"lower kind":    {project: project{Dir: "x", Kind: "cat"}, problem: "--kind"},
		"bad module":    {project: project{Dir: "two words"}, problem: "--module"},
		"part of yare":  {project: project{Dir: "x", Module: "github.com/yare-go/yare/x"}, problem: "--module"},
		"group":         {project: project{Dir: "x", Group: "Example.com"}, problem: "--group"},
		"short group":   {project: project{Dir: "x", Group: "example"}, problem: "--group"},
		"group of kube": {project: project{Dir: "x", Group: "batch.k8s.io"}, problem: "--group"},
		"dashes only":   {project: project{Dir: "--", Module: "example.com/x"}, problem: "--kind"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.project.Group == "" {
				test.project.Group = "example.com"
			}
			got, err := test.project.complete()
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("%v, want an error that names %s", err, test.problem)
				}
				return
			}
			got.Dir, test.want.Group = "", "example.com"
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A folder with a name that Kubernetes does not accept makes a program with a name that it accepts.
func TestProjectWithAnOddName(t *testing.T) {
	t.Parallel()
	p := project{Dir: filepath.Join(t.TempDir(), "myHTTP_proxy"), Group: "example.com"}
	p, err := p.complete()
	if err == nil {
		_, err = p.write(plane.Location{Dir: "/yare"})
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(p.Dir, "main.go"))
	if n := strings.Count(string(text), `"myhttp-proxy",`); n != 2 || err != nil {
		t.Errorf("main.go has the name %d times, not as Name and as a label: %v\n%s", n, err, text)
	}
}

// The commands at the end of yare new can be pasted into a shell, comments included, also with a folder of an odd name.
func TestNextStepsAreCommands(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"web-app", "../my app", "it's", "$HOME"} {
		folder := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		steps := nextSteps(folder)
		out, err := exec.CommandContext(t.Context(), "sh", "-c", steps[0]+"\npwd -P").CombinedOutput()
		want, _ := filepath.EvalSymlinks(folder)
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: %v: the shell is in %q, want %q", steps[0], err, got, want)
		}
	}
}

// A new project is complete, and compiles. .ci/stranger runs it.
func TestNew(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	cached, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "GOMODCACHE="+strings.TrimSpace(string(cached)))
	status, _, out := s.run("new", "./ship-log", "--module", "ships.example.org/log", "--group", "ships.example.org", "--kind", "Voyage")
	if status != 0 {
		t.Fatal(out)
	}
	for _, part := range []string{"created main.go", "the kind Voyage in the group ships.example.org", "go.mod replaces yare", "go mod tidy"} {
		if !strings.Contains(out, part) {
			t.Errorf("it does not print %q:\n%s", part, out)
		}
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, want := range []string{"yare:   cd ./ship-log       # main.go is", "yare:   go tool yare dev .  # runs it", "yare:   go test ./...       # tests it"} {
		if got := lines[len(lines)-3+i]; !strings.HasPrefix(got, want) || len(got) > 100 {
			t.Errorf("the closing line %d is %q, want %q with a short comment", i+1, got, want)
		}
	}
	dir := filepath.Join(s.dir, "ship-log")
	var names []string
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, _ := filepath.Rel(dir, name)
		names = append(names, filepath.ToSlash(relative))
		text, err := os.ReadFile(name)
		if left := bytes.Contains(bytes.ToLower(text), []byte("widget")) || bytes.Contains(text, []byte(templateGroup)); left {
			t.Errorf("%s has a name of the template:\n%s", relative, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	want := []string{".github/workflows/test.yml", "AGENTS.md", "README.md", "go.mod", "go.sum", "main.go", "main_test.go", "sample.yaml"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	goCommand := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(s.env, "GOWORK=off", "GOFLAGS=")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, text)
		}
	}
	goCommand("vet", "./...")
	goCommand("mod", "tidy", "-diff")

	// A folder with something in it is not changed.
	before := files(t, dir)
	status, _, out = s.run("new", "ship-log")
	if status != 1 || !strings.Contains(out, "is not empty") {
		t.Errorf("a second time: status %d\n%s", status, out)
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("the folder has changed:\n%s", diff)
	}
	s.write("file", "")
	for _, args := range [][]string{{"new"}, {"new", "a", "b"}, {"new", "9lives"}, {"new", "file"}, {"new", "file/x"}} {
		if status, _, out := s.run(args...); status != 1 || len(strings.TrimSpace(out)) == 0 {
			t.Errorf("%v: status %d\n%s", args, status, out)
		}
	}
	for _, name := range []string{"a", "b", "9lives"} {
		if _, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
			t.Errorf("a refused call has created %s", name)
		}
	}
}

// files returns the contents of the files in a folder, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	contents := make(map[string]string)
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		contents[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

// TestTemplateIsTheFirstLesson counts what somebody meets in the first operator: the distinct names of yare's packages
// and the distinct keys of crd tags.
func TestTemplateIsTheFirstLesson(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "template/main.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]bool{}
	for _, spec := range file.Imports {
		if name, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), plane.ModulePath+"/"); ok {
			packages[path.Base(name)] = true
		}
	}
	met := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && packages[x.Name] {
				met[x.Name+"."+n.Sel.Name] = true
			}
		case *ast.Field:
			if n.Tag == nil {
				return true
			}
			for key := range strings.SplitSeq(reflect.StructTag(strings.Trim(n.Tag.Value, "`")).Get("crd"), ",") {
				if name, _, _ := strings.Cut(key, "="); name != "" {
					met["crd:"+name] = true
				}
			}
		}
		return true
	})
	if names := slices.Sorted(maps.Keys(met)); len(names) > 16 {
		t.Errorf("the template has %d names of yare, more than 16: %q", len(names), names)
	} else {
		t.Logf("%d names: %q", len(names), names)
	}
}
