package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
)

type switchSpec struct {
	Position string `json:"position,omitempty" crd:"enum=|on|off"`
}

func (switchSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Switch"}
}

// What generators of clients lose is a warning. The definition is printed all the same.
func TestDefinitionsWithLosses(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := call([]string{"crd"}, Watcher[kube.CustomResource[switchSpec, kube.None]](idle), Watcher[gadget](idle))
	if status != 0 || strings.Count(stdout, "---\n") != 2 || strings.Contains(stdout, "warning") {
		t.Errorf("status %d:\n%s", status, stdout)
	}
	if want := `gadgets: warning: operator.switchSpec.Position: generators of clients lose or rename the value ""`; !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("the warnings are %q, not %q", stderr, want)
	}
}

// crd --folder writes one document a file, and replaces no file that another command has made.
func TestDefinitionsInAFolder(t *testing.T) {
	t.Parallel()
	parts := []Part{Watcher[kube.CustomResource[switchSpec, kube.None]](idle), Watcher[gadget](idle)}
	folder := filepath.Join(t.TempDir(), "a", "b")
	for range 2 { // the second call replaces the files
		status, stdout, stderr := call([]string{"crd", "--folder", folder}, parts...)
		if status != 0 || stdout != "" {
			t.Fatalf("status %d, %q, %s", status, stdout, stderr)
		}
	}
	_, printed, _ := call([]string{"crd"}, parts...)
	var written strings.Builder
	for _, name := range []string{"gadgets.example.com.yaml", "switches.example.com.yaml"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		_, document, _ := strings.Cut(string(text), "\n")
		written.WriteString(document)
	}
	if written.String() != printed {
		t.Errorf("the files have\n%s\nnot\n%s", written.String(), printed)
	}
	own := filepath.Join(folder, "gadgets.example.com.yaml")
	if err := os.WriteFile(own, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args, want string
		status     int
	}{
		{"crd --folder " + folder, own + ` does not begin with "# Made by "`, 1},
		{"crd --folder " + own, own, 1},
		{"crd --folder=", "it is empty", 2},
		{"manifests --folder x", "-folder", 2},
	} {
		status, stdout, stderr := call(strings.Fields(test.args), parts...)
		if status != test.status || stdout != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: status %d, %q, %s", test.args, status, stdout, stderr)
		}
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "mine" {
		t.Errorf("%v, the file has %q", err, text)
	}
}

// crd --diff compares by meaning, and its status says whether something differs.
func TestDifferencesFromAFile(t *testing.T) {
	t.Parallel()
	parts := []Part{Watcher[kube.CustomResource[switchSpec, kube.None]](idle), Watcher[gadget](idle)}
	_, printed, _ := call([]string{"crd"}, parts...)
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "crds.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	same := write("kind: Namespace\nmetadata: {name: a}\n" + printed)
	status, stdout, stderr := call([]string{"crd", "--diff", same}, parts...)
	if status != 0 || stdout != "" || stderr != "" {
		t.Errorf("the same definitions: status %d, %q, %s", status, stdout, stderr)
	}
	other := write(strings.NewReplacer("- name: v1\n", "- name: v1\n    deprecated: true\n").Replace(printed))
	status, stdout, stderr = call([]string{"crd", "--diff", other}, parts...)
	want := fmt.Sprintf("gadgets.example.com v1.deprecated: gadgets has nothing, %s has true\nswitches.example.com v1.deprecated: gadgets has nothing, %[1]s has true\n", other)
	if status != 1 || stdout != want || stderr != fmt.Sprintf("gadgets: the number of differences from %s is 2\n", other) {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
	_, document, _ := strings.Cut(printed, "---\n")
	first, _, _ := strings.Cut(document, "---\n")
	one := write(first)
	status, stdout, _ = call([]string{"crd", "--diff", one}, parts...)
	if want := "switches.example.com: " + one + " has no definition with this name, and has gadgets.example.com\n"; status != 1 || stdout != want {
		t.Errorf("status %d, %s", status, stdout)
	}
	for _, file := range []string{write("a: b"), write("{"), "no-such-file"} {
		if status, stdout, stderr := call([]string{"crd", "--diff", file}, parts...); status != 1 || stdout != "" || !strings.Contains(stderr, "compare the definitions with "+file+": ") {
			t.Errorf("status %d, %q, %s", status, stdout, stderr)
		}
	}
}
