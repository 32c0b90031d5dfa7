package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// tool is a generator of clients. tools/NAME.sh runs it.
type tool struct {
	name string
	// sendsDefaults is true if an object of the client has the defaults of fields that the program does not set.
	sendsDefaults bool
}

// tools returns all tools, in the order of the cost of their builds.
func tools() []tool {
	return []tool{
		{name: "cue"}, {name: "cdk8s"}, {name: "crd-generate"}, {name: "openapi-typescript", sendsDefaults: true},
		{name: "datamodel-code-generator"}, {name: "java-generator", sendsDefaults: true}, {name: "kopium"},
	}
}

// definition is what tools make clients of. file is the file that the program writes, if it writes several.
type definition struct{ name, program, file string }

// definitions returns all definitions.
func definitions() []definition {
	return []definition{
		{"webapp", "../../examples/webapp", ""}, {"cronjob", "../../examples/cronjob", ""},
		{"probe", ".", "probes.languages.yare.dev.yaml"}, {"odd", ".", "odds.languages.yare.dev.yaml"},
	}
}

// failure is what a step of a tool prints when it fails.
type failure struct{ tool, definition, step, text string }

// TestClients makes clients of definitions by each tool. What the client of a Probe prints is applied, read by Go, and
// applied again without a change.
func TestClients(t *testing.T) {
	if os.Getenv("YARE_LANGUAGES") == "" {
		t.Skip("it installs seven tools: YARE_LANGUAGES=1 runs it")
	}
	in := t.TempDir()
	cluster := yaretest.Shared(t)
	for _, d := range definitions() {
		d.write(t, cluster, in)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	known := knownFailures(t)
	for _, each := range tools() {
		t.Run(each.name, func(t *testing.T) {
			r := run{t: t, tool: each, in: in, folder: t.TempDir(), installed: filepath.Join(cache, "yare", "languages")}
			if err := os.MkdirAll(r.installed, 0o755); err != nil {
				t.Fatal(err)
			}
			if out, err := r.call("install"); err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			var failures []failure
			for _, d := range definitions() {
				for _, step := range []string{"generate", "compile"} {
					if out, err := r.call(step, d.name); err != nil {
						failures = append(failures, failure{each.name, d.name, step, out})
						break
					}
				}
			}
			r.check(failures, known)
			r.checkObject(cluster)
		})
	}
}

// write writes the definition, its schema and the document of the API server into folder, for the tools.
func (d definition) write(t *testing.T, cluster *yaretest.Cluster, folder string) {
	t.Helper()
	program, all := yaretest.Build(t, d.program), t.TempDir()
	if out, err := exec.CommandContext(t.Context(), program, "crd", "--folder", all).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%s crd: %v\n%s", d.name, err, out)
	}
	if d.file == "" {
		files, err := os.ReadDir(all)
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %d definitions", err, len(files))
		}
		d.file = files[0].Name()
	}
	text, err := os.ReadFile(filepath.Join(all, d.file))
	if err != nil {
		t.Fatal(err)
	}
	var c crd.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	schema, err := json.Marshal(c.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	cluster.Kubectl(t, string(text), "apply", "--server-side", "-f", "-")
	var document string
	yaretest.Eventually(t, func() (err error) { // the server publishes the document after a moment
		document, _, err = cluster.TryKubectl(t, "", "get", "--raw", "/openapi/v3/apis/"+c.Spec.Group+"/"+c.Spec.Versions[0].Name)
		if err == nil && !strings.Contains(document, fmt.Sprintf(`.%s":{`, c.Spec.Names.Kind)) {
			err = fmt.Errorf("the document of %s has no %s", c.Spec.Group, c.Spec.Names.Kind)
		}
		return err
	})
	for ending, content := range map[string]string{".yaml": string(text), ".schema.json": string(schema), ".openapi.json": document} {
		if err := os.WriteFile(filepath.Join(folder, d.name+ending), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// run is a run of a tool on all definitions.
type run struct {
	t    *testing.T
	tool tool
	// in holds the definitions, folder what the tool makes, and installed the tools.
	in, folder, installed string
}

// call runs a step of the tool, and returns what it prints.
func (r run) call(args ...string) (string, error) {
	script, err := filepath.Abs("tools/run")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(r.t.Context(), script, append([]string{r.tool.name}, args...)...)
	cmd.Dir, cmd.Env = r.folder, append(os.Environ(), "IN="+r.in, "TOOLS="+r.installed, "GOFLAGS=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

// check compares the failures of the tool with those that are known.
func (r run) check(failures, known []failure) {
	for _, f := range failures {
		if !slices.ContainsFunc(known, f.is) {
			r.t.Errorf("%s fails to %s %s:\n%s", f.tool, f.step, f.definition, f.text[max(0, len(f.text)-4000):])
		}
	}
	for _, k := range known {
		if k.tool == r.tool.name && !slices.ContainsFunc(failures, func(f failure) bool { return f.is(k) }) {
			r.t.Errorf("%s no longer fails to %s %s with %q: remove the line of failures.txt, and look at docs/guide/types.md",
				k.tool, k.step, k.definition, k.text)
		}
	}
}

// is reports whether f is the known failure k.
func (f failure) is(k failure) bool {
	return f.tool == k.tool && f.definition == k.definition && f.step == k.step && strings.Contains(f.text, k.text)
}

// checkObject applies the Probe that the client prints, twice, and reads it.
func (r run) checkObject(cluster *yaretest.Cluster) {
	r.t.Helper()
	out, err := r.call("print")
	if err != nil {
		r.t.Fatalf("%v:\n%s", err, out)
	}
	if sends := strings.Contains(out, `"count"`) && strings.Contains(out, `"paused"`); sends != r.tool.sendsDefaults {
		r.t.Errorf("sends defaults: %t, not %t, as docs/guide/types.md says:\n%s", sends, r.tool.sendsDefaults, out)
	}
	if strings.Contains(out, "null") {
		r.t.Errorf("sends a null:\n%s", out)
	}
	apply := func() *Probe {
		cluster.Kubectl(r.t, out, "apply", "--server-side", "--field-manager", r.tool.name, "--namespace", "default", "-f", "-")
		probe, err := kube.Get[Probe](r.t.Context(), cluster.Client(r.t), "default", r.tool.name)
		if err != nil {
			r.t.Fatal(err)
		}
		return probe
	}
	first := apply()
	spec, err := json.Marshal(first.Spec)
	const want = `{"text":"hello","big":9007199254740991,"count":3,"port":8080,"memory":"1Gi","mode":"Fast",` +
		`"settings":{"depth":1},"items":[{"name":"a","size":2}]}`
	if err != nil || string(spec) != want {
		r.t.Errorf("%v, Go reads\n%s\nnot\n%s", err, spec, want)
	}
	if again := apply(); again.ResourceVersion != first.ResourceVersion {
		r.t.Errorf("a second apply changes the object:\n%s", out)
	}
}

// knownFailures returns the failures of failures.txt.
func knownFailures(t *testing.T) (known []failure) {
	t.Helper()
	text, err := os.ReadFile("failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); !strings.HasPrefix(line, "#") {
			known = append(known, failure{f[0], f[1], f[2], strings.Join(f[3:], " ")})
		}
	}
	return known
}
