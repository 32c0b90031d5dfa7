package site

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Image is the image of all installations. No test pulls an image.
const Image = "registry.example.com/webapp@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// Build compiles an example.
func Build(t *testing.T, example string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), example)
	args := append([]string{"build", "-o", program}, flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./examples/"+example)...)
	cmd.Dir = root(t)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, said)
	}
	return program
}

// BuildNextCronJob compiles the next release of CronJob, whose definition has one more field, note, and one more
// column.
func BuildNextCronJob(t *testing.T) string {
	t.Helper()
	source := filepath.Join(root(t), "examples", "cronjob", "types.go")
	content, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const settings = "type Settings struct {\n"
	const note = "\t// A note.\n\tNote string `json:\"note,omitempty\" crd:\"column\"`\n"
	next := bytes.Replace(content, []byte(settings), []byte(settings+note), 1)
	if bytes.Equal(next, content) {
		t.Fatalf("%s has no %q", source, settings)
	}
	folder := t.TempDir()
	changed, overlay := filepath.Join(folder, "types.go"), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{changed: next, overlay: replace} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Build(t, "cronjob", "-overlay="+overlay)
}

// root returns the folder of the module of yare.
func root(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(Run(t, "go", "list", "-m", "-f={{.Dir}}", "github.com/yare-go/yare"))
}

// Run runs a program, and returns its output.
func Run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stderr = &stderr
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(program), args, err, stderr.Bytes())
	}
	return string(said)
}

// Parse returns the objects of a stream.
func Parse(t *testing.T, stream string) (objects []map[string]any) {
	t.Helper()
	for document := range strings.SplitSeq(stream, "\n---\n") {
		object := make(map[string]any)
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if len(object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}
