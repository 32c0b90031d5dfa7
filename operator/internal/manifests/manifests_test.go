package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Helm does not take the text of an author for a template.
func TestChartKeepsBracesOfAuthors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &Options{Installation: Installation{Program: "robots"}, Version: "v1"}
	object := Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": Object{"name": HelmRelease + "-settings", "namespace": HelmNamespace}, "data": Object{"greeting": "{{ .Name }}"}}
	if err := WriteChart(dir, o, []Object{object}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "templates", "manifests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`greeting: '{{ "{{" }} .Name }}'`, "name: '{{ .Release.Name }}-settings'", "namespace: {{ toJson .Release.Namespace }}"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the template lacks %s:\n%s", want, text)
		}
	}
}

func TestParseMemory(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"1": 1, "2k": 2000, "3Ki": 3072, "64Mi": 64 << 20, "5G": 5e9, "1Ti": 1 << 40, "9223372036854775807": 1<<63 - 1} {
		if got, err := ParseMemory(text); err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Mi", "0", "-1Mi", "1.5Gi", "1Mb", "1kM", "9Ei", "9223372036854775807Ki", "99999999999999999999"} {
		if got, err := ParseMemory(text); err == nil {
			t.Errorf("%s is %d", text, got)
		}
	}
}
