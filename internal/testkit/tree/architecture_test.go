package tree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/yare-go/yare"

// featureLayer is the layer of all features: the folders below operator/. Package operator imports none of them.
const featureLayer = "operator/*"

// library lists the packages that operators import.
var library = []string{"kube", "kube/readiness", "kube/wire", "crd", "watch", "controller", "controller/children", "events", "operator", featureLayer}

// layers lists, for each layer, the packages of yare that the layer may import outside of its
// tests. A folder below a layer belongs to that layer. A package in no layer is an error: the
// package needs an entry here and in docs/architecture.md.
var layers = map[string][]string{
	"internal/jsonscan": {},
	// It decodes and encodes JSON by the rules of Kubernetes.
	"internal/jsonscan/kubejson": {},
	// It is the sets of fields in managedFields.
	"internal/jsonscan/fieldset": {"internal/jsonscan/kubejson"},
	// It finds fields that a program sets back again and again.
	"internal/feature/contested": {"internal/jsonscan/fieldset", "internal/jsonscan/kubejson", "kube/wire"},
	"internal/ident":             {},
	// It is the time of a program, which a test can move.
	"internal/clock": {},
	// It makes rules of RBAC of what a program needs, and checks requests against them.
	"internal/access": {"kube", "kube/wire"},
	// It decodes objects.
	"kube/internal/jsonplan": {"internal/jsonscan", "internal/jsonscan/kubejson"},
	// It forms the plurals of kinds.
	"kube/internal/plural": {},
	// builtin knows the kinds of Kubernetes.
	"kube/internal/builtin": {"kube/internal/plural", "kube/wire"},
	// It reads kubeconfig files.
	"kube/internal/kubeconfig": {},
	// It reads objects from YAML and JSON.
	"internal/plane/manifest": {},
	// It is what a program asks of a feature, and what the program lends to it.
	"internal/feature": {"kube", "kube/wire", "crd", "controller", "internal/follow"},
	// It is the proxy in front of an API server, with the faults that it injects.
	"internal/proxy": {"kube", "kube/wire", "internal/clock"},
	// It is for tests.
	"internal/testkit/bound": {},
	// It carries what log lines are about, describes panics, and writes logs for people.
	"internal/logctx": {},
	// It reduces objects to the fields of a type.
	"internal/jsonscan/projection": {"internal/jsonscan"},

	"kube/wire":      {"internal/ident", "internal/jsonscan", "internal/jsonscan/kubejson"},
	"kube":           {"internal/ident", "internal/clock", "internal/jsonscan", "kube/wire", "kube/internal/jsonplan", "internal/jsonscan/kubejson", "kube/internal/kubeconfig", "kube/internal/builtin", "kube/internal/plural", "internal/jsonscan/projection"},
	"kube/readiness": {"kube", "kube/internal/builtin"},
	"crd":            {"kube", "kube/wire", "internal/ident"},
	// It follows streams, and returns changes as bytes.
	"internal/follow": {"kube", "kube/wire", "internal/jsonscan", "internal/ident", "internal/clock"},
	"watch":           {"kube", "kube/wire", "internal/follow"},
	"internal/cache": {
		"kube", "kube/wire", "internal/follow", "internal/cache/internal/overlay", "internal/cache/internal/progress", "internal/cache/internal/database", "internal/jsonscan", "internal/ident",
		"internal/jsonscan/projection",
	},
	"internal/cache/internal/codec":    {},
	"internal/cache/internal/overlay":  {"kube", "kube/wire", "internal/ident"},
	"internal/cache/internal/progress": {"internal/follow", "internal/ident"},
	"internal/cache/internal/slots":    {},
	"internal/cache/internal/database": {"kube", "kube/wire", "internal/cache/internal/codec", "internal/cache/internal/slots", "internal/jsonscan", "internal/ident"},
	// Objects for the tests of the cache.
	"internal/cache/internal/samples": {"kube", "kube/wire"},

	// It elects the leader among the replicas of a program.
	"internal/lease": {"kube", "kube/wire", "internal/follow"},

	"controller": {"kube", "kube/wire", "watch", "internal/feature/contested", "internal/follow", "internal/cache", "internal/access", "internal/clock", "internal/jsonscan", "internal/jsonscan/fieldset", "internal/ident", "internal/logctx"},
	// It applies the children of an owner as a set.
	"controller/children": {"kube", "kube/readiness", "kube/wire", "controller", "internal/ident"},
	"events":              {"kube", "kube/wire", "controller"},
	"operator":            {"kube", "kube/wire", "crd", "watch", "internal/follow", "internal/cache", "controller", "internal/lease", "internal/feature/contested", "internal/clock", "internal/logctx", "internal/access", "internal/ident", "internal/jsonscan", "internal/jsonscan/kubejson", "internal/feature"},
	featureLayer: {
		"kube", "kube/wire", "crd", "controller", "internal/access", "internal/cache", "internal/clock", "internal/feature/contested", "internal/feature", "internal/follow",
		"internal/ident", "internal/jsonscan", "internal/jsonscan/fieldset", "internal/jsonscan/kubejson", "internal/logctx", "operator",
	},
	"internal/plane":        {"internal/access"},
	"internal/plane/policy": {"kube", "kube/wire", "internal/feature"},
	// It waits until an API server uses the changed schema of a definition.
	"internal/plane/schemachange": {"kube", "kube/wire"},
	"cmd/yare/internal/dev":       append([]string{"internal/plane", "internal/plane/policy", "internal/plane/schemachange", "internal/logctx", "internal/access", "internal/plane/manifest", "internal/proxy"}, library...),
	"yaretest":                    append([]string{"internal/feature", "internal/plane", "internal/plane/policy", "internal/plane/schemachange", "internal/clock", "internal/logctx", "internal/access", "internal/plane/manifest", "internal/proxy"}, library...),
	// The exploration of programs under faults.
	"explore":  append([]string{"internal/plane", "internal/plane/policy", "internal/clock", "internal/logctx", "internal/access", "internal/plane/manifest", "internal/proxy", "internal/ident", "internal/follow", "yaretest"}, library...),
	"cmd/yare": append([]string{"internal/plane", "cmd/yare/internal/dev", "cmd/yare/internal/tags", "explore"}, library...),
	// It rewrites Go files.
	"cmd/yare/internal/tags": {},

	// The tests of the examples share it.
	"examples/internal/operatortest": append([]string{"yaretest", "explore"}, library...),
	// A kind for tests on a real API server.
	"internal/testkit/gadget":      {"kube", "kube/wire", "yaretest"},
	"internal/testkit/serverminor": {"kube", "yaretest"},
	"internal/testkit/securepages": {"kube", "yaretest"},
	// An API server in memory, for tests.
	"internal/testkit/fakeserver": {"kube", "kube/wire"},
	// It holds only tests, of a whole program on that server.
	"internal/testkit/programmodel": {},
	// It makes certificates for tests.
	"internal/testkit/testcert": {},
	// It writes programs for tests.
	"internal/testkit/executable": {},
	// It runs tests that mostly wait.
	"internal/testkit/parallel": {},
	// It breaks promises on purpose, and runs their tests.
	"internal/testkit/mutation": {},
	// It holds only tests, of the whole tree.
	"internal/testkit/tree": {},

	"examples": library,
	// The code that the pages of the guide show.
	"docs/guide/code": append([]string{"yaretest", "explore"}, library...),
}

// forbidden lists packages that no operator links, with the reason. An entry includes the
// packages below it.
var forbidden = map[string]string{
	"k8s.io/client-go":                           "its configuration and credentials cost 4 MB, and its typed clients 12 MB: kube.Config replaces both",
	"golang.org/x/oauth2":                        "kube sends tokens itself",
	modulePath + "/kube/clientgo":                "it links client-go",
	modulePath + "/kube/pods":                    "it links a WebSocket library, for programs that run commands in Pods",
	"go.opentelemetry.io/otel":                   "its SDK is 9 MB: module otel adapts it for programs that want it",
	"sigs.k8s.io/controller-runtime":             "it is a peer, and 20 MB",
	"github.com/prometheus/client_golang":        "it is 2 MB: module prometheus adapts it for programs that want it",
	"github.com/spf13/cobra":                     "package flag is enough for an operator",
	"github.com/klauspost/compress/zstd":         "it costs 0.5 MB: the cache compresses by s2",
	"k8s.io/kubernetes":                          "only the control plane is made of it",
	"testing":                                    "it is for tests",
	modulePath + "/internal/plane":               "it is for the command line and for tests",
	modulePath + "/cmd/yare/internal/dev":        "it is for the command line",
	modulePath + "/internal/proxy":               "it is for tests and the command line",
	modulePath + "/explore":                      "it is for tests and the command line",
	modulePath + "/yaretest":                     "it is for tests",
	modulePath + "/internal/testkit/fakeserver":  "it is for tests",
	modulePath + "/internal/testkit/gadget":      "it is for tests",
	modulePath + "/internal/testkit/serverminor": "it is for tests",
	modulePath + "/internal/testkit/securepages": "it is for tests",
}

// lineBudgets holds the largest number of lines, by `wc -l`, of the main.go of each example and of the typical operator.
var lineBudgets = map[string]int{
	"examples/book": 45, "examples/member": 45, "examples/echo": 85, "examples/myservice": 95, "examples/webapp": 95, "examples/cronjob": 160,
	"docs/guide/code/typical": 80,
}

func TestImportsPointDownwards(t *testing.T) {
	enterRoot()
	for name, file := range sources(t) {
		if strings.HasSuffix(name, "_test.go") {
			continue // tests may import everything
		}
		from, ok := layerOf(path.Dir(name))
		if !ok {
			t.Errorf("%s is in no layer: add its package to layers in architecture_test.go", name)
			continue
		}
		for _, imported := range imports(file) {
			own, ok := strings.CutPrefix(imported, modulePath+"/")
			if !ok {
				continue
			}
			to, ok := layerOf(own)
			if !ok || to != from && !slices.Contains(layers[from], to) {
				t.Errorf("%s imports %s: of yare, %s may import only %v", name, own, from, layers[from])
			}
		}
	}
}

// layerOf returns the layer of a folder. It reports whether there is one.
func layerOf(dir string) (string, bool) {
	if parts := strings.Split(dir, "/"); len(parts) > 1 && parts[0] == "operator" && parts[1] != "internal" {
		return featureLayer, true
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := layers[dir]; ok {
			return dir, true
		}
	}
	return "", false
}

// TestInternalHasTwoGroups compares the folders of internal/ with the table of docs/architecture.md. A folder of the
// group ground imports no other package of yare.
func TestInternalHasTwoGroups(t *testing.T) {
	enterRoot()
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	groups := make(map[string]string)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(internal/\\w+)` \\| (ground|shared) \\|").FindAllStringSubmatch(string(page), -1) {
		groups[row[1]] = row[2]
		listed = append(listed, row[1])
	}
	folders, err := fs.Glob(os.DirFS("."), "internal/*")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(listed, folders) {
		t.Errorf("internal/ has %q, and docs/architecture.md has rows for %q", folders, listed)
	}
	if len(folders) > 12 {
		t.Errorf("internal/ has %d entries, more than 12", len(folders))
	}
	for name, file := range sources(t) {
		folder := strings.Join(strings.SplitN(name, "/", 3)[:min(2, strings.Count(name, "/"))], "/")
		if groups[folder] != "ground" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, imported := range imports(file) {
			if own, ok := strings.CutPrefix(imported, modulePath+"/"); ok && own != folder && !strings.HasPrefix(own, folder+"/") {
				t.Errorf("%s imports %s, but %s is in the group ground", name, own, folder)
			}
		}
	}
}

func TestOperatorsLinkNothingForbidden(t *testing.T) {
	enterRoot()
	// go test caches results. Reading the sources makes the result depend on them, because
	// go test does not see which files a go command reads.
	files := sources(t)
	args := []string{"list", "-deps", "-json=ImportPath,Imports"}
	for _, each := range append(features(t), library...) {
		if hasPackage(files, each) {
			args = append(args, "./"+each)
		}
	}
	for _, each := range examples(t) {
		args = append(args, "./examples/"+each)
	}
	// importer holds, for each package, the first package that imports it.
	importer := map[string]string{}
	var linked []string
	decoder := json.NewDecoder(bytes.NewReader(run(t, args...)))
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		linked = append(linked, p.ImportPath)
		for _, each := range p.Imports {
			if importer[each] == "" {
				importer[each] = p.ImportPath
			}
		}
	}
	for _, p := range linked {
		for prefix, reason := range forbidden {
			if p == prefix || strings.HasPrefix(p, prefix+"/") {
				t.Errorf("an operator links %s (%s):%s", p, reason, chain(importer, p))
			}
		}
	}
}

// features returns the packages of the features: the folders below operator/.
func features(t *testing.T) (all []string) {
	t.Helper()
	entries, err := os.ReadDir("operator")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "internal" {
			all = append(all, "operator/"+e.Name())
		}
	}
	return all
}

// TestOperatorKnowsNoFeature checks that a feature stands in a package of its own. Package operator and package feature import
// none, and none of their identifiers and flags names one. Package operator stays small.
func TestOperatorKnowsNoFeature(t *testing.T) {
	enterRoot()
	words := []string{"converter", "live-page"}
	for _, f := range features(t) {
		words = append(words, path.Base(f))
	}
	word := regexp.MustCompile("(?i)" + strings.Join(words, "|"))
	flagName := regexp.MustCompile(`^"[a-z]+(-[a-z]+)*"$`)
	files, lines := 0, 0
	for name, file := range sources(t) {
		folder := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") || folder != "operator" && !strings.HasPrefix(folder, "internal/feature") {
			continue
		}
		if folder == "operator" {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, lines = files+1, lines+bytes.Count(content, []byte("\n"))
		}
		for _, imported := range imports(file) {
			if p := strings.TrimPrefix(imported, modulePath+"/"); slices.Contains(features(t), p) || p == "operator/internal/calls" {
				t.Errorf("%s imports %s", name, p)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if word.MatchString(n.Name) {
					t.Errorf("%s: the identifier %s names a feature", name, n.Name)
				}
			case *ast.BasicLit:
				if flagName.MatchString(n.Value) && word.MatchString(n.Value) {
					t.Errorf("%s: the flag %s is that of a feature", name, n.Value)
				}
			}
			return true
		})
	}
	if files > 40 || lines > 4500 {
		t.Errorf("package operator has %d files and %d lines, and may have 40 and 4500", files, lines)
	}
}

// TestProgramsLinkTheFeaturesThatTheyImport checks that an example links a feature only if its own code imports the feature.
func TestProgramsLinkTheFeaturesThatTheyImport(t *testing.T) {
	enterRoot()
	files := sources(t)
	for _, example := range examples(t) {
		linked := strings.Fields(string(run(t, "list", "-deps", "./examples/"+example)))
		for _, feature := range features(t) {
			isImported := false
			for name, file := range files {
				if path.Dir(name) == "examples/"+example && !strings.HasSuffix(name, "_test.go") {
					isImported = isImported || slices.Contains(imports(file), modulePath+"/"+feature)
				}
			}
			if isLinked := slices.Contains(linked, modulePath+"/"+feature); isLinked != isImported {
				t.Errorf("examples/%s links %s: %t, and imports it: %t", example, feature, isLinked, isImported)
			}
		}
	}
}

// chain returns the packages by which the first one imports to, a line for each.
func chain(importer map[string]string, to string) string {
	text := ""
	for p := to; p != ""; p = importer[p] {
		text = "\n\t" + p + text
	}
	return text
}

func TestExamplesKeepTheirLineBudgets(t *testing.T) {
	enterRoot()
	for _, example := range examples(t) {
		if _, ok := lineBudgets["examples/"+example]; !ok {
			t.Errorf("examples/%s has no line budget: give it one in architecture_test.go", example)
		}
	}
	for folder, budget := range lineBudgets {
		source, err := os.ReadFile(folder + "/main.go")
		if err != nil {
			t.Fatal(err)
		}
		formatted, err := format.Source(source)
		if err != nil {
			t.Error(err)
			continue
		}
		if lines := bytes.Count(formatted, []byte("\n")); lines > budget {
			t.Errorf("%s/main.go has %d lines, %d more than it may", folder, lines, lines-budget)
		}
	}
}

// TestModulesReplaceNothing checks that the modules have no replace and no exclude directive. Both hold in the main
// module only, so a module that requires yare would get other code than the code tested here.
func TestModulesReplaceNothing(t *testing.T) {
	enterRoot()
	for _, name := range []string{"go.mod", "controlplane/go.mod", "image/go.mod", "realnode/go.mod"} {
		if _, err := os.ReadFile(name); err != nil { // go test records the file as an input
			t.Fatal(err)
		}
		var mod struct{ Replace, Exclude []any }
		if err := json.Unmarshal(run(t, "mod", "edit", "-json", name), &mod); err != nil {
			t.Fatal(err)
		}
		if n := len(mod.Replace) + len(mod.Exclude); n > 0 {
			t.Errorf("%s has %d replace and exclude directives: a module that requires it would not see them", name, n)
		}
	}
}

// TestGuaranteesNameTestsThatExist checks that each test named in docs/guarantees.md and docs/reliability.md exists.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	enterRoot()
	declared := map[string]bool{}
	for name, file := range sources(t) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil {
				declared[f.Name.Name] = true
				declared[path.Base(path.Dir(name))+"."+f.Name.Name] = true
			}
		}
	}
	for _, page := range []string{"docs/guarantees.md", "docs/reliability.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`\b(?:\w+\.)?(?:Test|Fuzz|Example|Benchmark)[A-Z]\w*`).FindAllString(string(text), -1)
		if len(named) == 0 {
			t.Errorf("%s names no test", page)
		}
		for _, name := range named {
			if !declared[name] {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
	}
}

// sources returns the Go files of this module by their slash-separated names.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" {
				return fs.SkipDir
			}
			// a nested module
			if _, err := os.Stat(name + "/go.mod"); err == nil {
				return fs.SkipDir
			}
			return nil
		}
		// A parser of Go 1.26 cannot read methods with type parameters.
		if !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_go127_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading the sources: %w", err)
		}
		files[name] = file
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func imports(file *ast.File) []string {
	var all []string
	for _, spec := range file.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil {
			all = append(all, name)
		}
	}
	return all
}

func hasPackage(files map[string]*ast.File, dir string) bool {
	for name := range files {
		if path.Dir(name) == dir && !strings.HasSuffix(name, "_test.go") {
			return true
		}
	}
	return false
}

// examples returns the names of the operators below examples/.
func examples(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "internal" {
			names = append(names, entry.Name())
		}
	}
	return names
}

// run returns the standard output of a go command.
func run(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}
