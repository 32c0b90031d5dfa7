package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without -w, yare tags prints the file and leaves it alone. Notes go to the standard error.
func TestTags(t *testing.T) {
	t.Parallel()
	const before = "package v1\n\ntype S struct {\n\t// +kubebuilder:validation:Minimum=1\n\t// +kubebuilder:example=3\n\tA int `json:\"a\"`\n}\n"
	const after = "package v1\n\ntype S struct {\n\t// +kubebuilder:example=3\n\tA int `json:\"a\" crd:\"minimum=1\"`\n}\n"
	file := filepath.Join(t.TempDir(), "s.go")
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (stdout, stderr string) {
		var out, errs bytes.Buffer
		cmd := newTags()
		cmd.SetArgs(append(args, file))
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String(), errs.String()
	}
	note := file + ":5: +kubebuilder:example=3 stays: crd has nothing like it: write it into the comment\n"
	if stdout, stderr := run(); stdout != after || stderr != note {
		t.Errorf("%s\n%s", stdout, stderr)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != before {
		t.Errorf("%v, the file has\n%s", err, text)
	}
	if stdout, stderr := run("-w"); stdout != "" || !strings.HasPrefix(stderr, file+":5: ") {
		t.Errorf("%q\n%s", stdout, stderr)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != after {
		t.Errorf("%v, the file has\n%s", err, text)
	}
}
