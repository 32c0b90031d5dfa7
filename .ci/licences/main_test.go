package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const forbidden = `DO WHAT THE FUCK YOU WANT TO PUBLIC LICENSE
TERMS AND CONDITIONS FOR COPYING, DISTRIBUTION AND MODIFICATION

0. You just DO WHAT THE FUCK YOU WANT TO.
`

func TestCheck(t *testing.T) {
	t.Parallel()
	ours, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"an allowed licence":            {files: map[string]string{"LICENSE": string(ours)}},
		"another name":                  {files: map[string]string{"licence-apache.txt": string(ours), "license.go": "package x"}},
		"a licence that is not allowed": {files: map[string]string{"COPYING": forbidden}, want: "COPYING has the licence WTFPL"},
		"one of two is not allowed":     {files: map[string]string{"LICENSE": string(ours), "LICENSE-2": forbidden}, want: "LICENSE-2 has the licence WTFPL"},
		"a text that is no licence":     {files: map[string]string{"LICENSE": "Ask the author."}, want: "no file in its root"},
		"no licence":                    {files: map[string]string{"README": string(ours)}, want: "no file in its root"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for file, text := range test.files {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := check(module{Dir: folder})
			if isRefused := err != nil; isRefused != (test.want != "") || isRefused && !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}
