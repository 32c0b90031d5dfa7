package crd

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube"
)

type described struct{}

// A test file can declare a type again, with a comment for tests.
func TestCommentsAreNotTakenFromTests(t *testing.T) {
	t.Parallel()
	source := fstest.MapFS{
		"a_test.go": {Data: []byte("package crd\n\n// Wrong.\ntype described struct{}\n")},
		"b.go":      {Data: []byte("package crd\n\n// Right.\ntype described struct{}\n")},
	}
	typ := reflect.TypeFor[described]()
	s := sourcesOf(kube.Type{Go: typ, Definition: &kube.Definition{Source: source}}, func(err error) { t.Error(err) })
	if got := s.commentOfType(typ); got != "Right." {
		t.Errorf("the comment is %q", got)
	}
}

// Markers for tools were taken for text if they were indented, as in a list.
func TestFoldLeavesMarkersOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A.\n+optional\n":                     "A.",
		"A.\n  +kubebuilder:default=1\nB.\n":  "A. B.",
		"A:\n  - one\n    +optional\n  - two": "A:\n- one\n- two",
		"A.\n\n\t+k8s:required\n":             "A.",
		"1 + 1\n":                             "1 + 1",
	} {
		if got := descriptionOf(text); got != want {
			t.Errorf("descriptionOf(%q) = %q, want %q", text, got, want)
		}
	}
}

// A Pod template is described if OtherSources has the files of k8s.io/api.
func TestCommentsOfKubernetes(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	of, err := kube.TypeOf[kube.CustomResource[withTemplate, kube.None]]()
	if err != nil {
		t.Fatal(err)
	}
	d := *of.Definition
	of.Definition = &d
	for _, isDescribed := range []bool{false, true} {
		if isDescribed {
			d.OtherSources = map[string]fs.FS{"k8s.io/api/core/v1": os.DirFS(filepath.Join(strings.TrimSpace(string(out)), "core", "v1"))}
		}
		all, err := From(of)
		if err != nil {
			t.Fatal(err)
		}
		pod := all[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["template"].Properties["spec"]
		image := pod.Properties["containers"].Items.Properties["image"]
		if isDescribed != strings.HasPrefix(image.Description, "Container image name.") {
			t.Errorf("with sources %t: the description of the image is %q", isDescribed, image.Description)
		}
	}
}

type withTemplate struct {
	Template corev1.PodTemplateSpec `json:"template"`
}

func (withTemplate) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Templated"}
}
