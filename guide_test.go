package yare_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codeOfGuide lists the folders of the code that the pages show. All of it is compiled: by go vet
// ./..., by the checks of the module of the peer, or by the benchmark.
var codeOfGuide = []string{"docs/guide/code", "examples", "cmd/yare", "bench/controllerruntime", "bench/kubers/src"}

// TestGuideShowsCompiledCode checks that each block of Go or Rust in the pages of the guide is part
// of a compiled file. Indentation, comments and blank lines may differ. The line // … in a block
// stands for lines that are left out.
func TestGuideShowsCompiledCode(t *testing.T) {
	t.Parallel()
	var sources []string
	for _, folder := range codeOfGuide {
		err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !slices.Contains([]string{".go", ".rs", ".tmpl"}, path.Ext(name)) {
				return err
			}
			text, err := os.ReadFile(name)
			sources = append(sources, "\n"+strings.Join(codeLines(string(text)), "\n")+"\n")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pages, err := filepath.Glob("docs/guide/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("the guide has no pages: %v", err)
	}
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range codeBlock.FindAllStringSubmatchIndex(string(text), -1) {
			line := 1 + strings.Count(string(text[:block[0]]), "\n")
			for part := range strings.SplitSeq(string(text[block[2]:block[3]]), "// …") {
				if code := strings.Join(codeLines(part), "\n"); code != "" && !slices.ContainsFunc(sources, func(source string) bool {
					return strings.Contains(source, "\n"+code+"\n")
				}) {
					t.Errorf("%s:%d: no file in %s contains this code:\n%s", page, line, strings.Join(codeOfGuide, ", "), code)
				}
			}
		}
	}
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```(?:go|rust)\n(.*?)^```$")
	fenced    = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
)

// codeLines returns the lines of a source without indentation, blank lines and comments of whole
// lines.
func codeLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestGuideLinksExist checks that the links between the pages of the guide, and to files of the
// project, lead to something.
func TestGuideLinksExist(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`).FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil {
				t.Error(fmt.Errorf("%s: a link leads nowhere: %w", page, err))
			}
		}
	}
}
