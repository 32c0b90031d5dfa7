package tree_test

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// codeOfGuide lists the folders of the code that the pages show. All of it is compiled: by go vet
// ./..., by the checks of the module of the peer, or by the benchmark.
var codeOfGuide = []string{"docs/guide/code", "examples", "cmd/yare", "lab/bench/controllerruntime", "lab/bench/kubers/src", "ctrl"}

// TestGuideShowsCompiledCode checks that each block of Go or Rust in the pages of the guide is part
// of a compiled file. Indentation, comments and blank lines may differ. The line // … in a block
// stands for lines that are left out.
func TestGuideShowsCompiledCode(t *testing.T) {
	t.Parallel()
	enterRoot()
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

// TestTypicalOperatorIsSmall counts the lines of the program that the page about the typical operator shows.
func TestTypicalOperatorIsSmall(t *testing.T) {
	t.Parallel()
	enterRoot()
	text, err := os.ReadFile("docs/guide/code/typical/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 80 {
		t.Errorf("the typical operator has %d lines, more than 80", lines)
	}
}

// TestReadmeHasTheRecordedSize compares the size of a binary in README and in the comparison with the record of WebApp in
// .ci/sizes.txt.
func TestReadmeHasTheRecordedSize(t *testing.T) {
	t.Parallel()
	enterRoot()
	records, err := os.ReadFile(".ci/sizes.txt")
	if err != nil {
		t.Fatal(err)
	}
	record := regexp.MustCompile(`(?m)^webapp +(\d+) +(\d+)$`).FindStringSubmatch(string(records))
	if record == nil {
		t.Fatal(".ci/sizes.txt has no record of webapp")
	}
	for _, page := range []string{"README.md", "docs/comparison.md"} {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		shown := regexp.MustCompile(`(?m)^\| stripped binary of the same operator \(gzip -9\) \| ([0-9.]+) MB \(([0-9.]+)\) \|`).FindStringSubmatch(string(content))
		if shown == nil {
			t.Fatalf("%s has no row about the stripped binary", page)
		}
		for i, text := range shown[1:] {
			megabytes, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := strconv.ParseFloat(record[i+1], 64)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(megabytes-recorded/1e6) > 0.1 {
				t.Errorf("%s has a size of %s MB, and .ci/sizes.txt %.2f MB", page, text, recorded/1e6)
			}
		}
	}
}

// TestReadmeIsShort checks the lengths that README has and names.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	enterRoot()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(readme), "\n"); lines > 140 {
		t.Errorf("README has %d lines, more than 140", lines)
	}
	block := codeBlock.FindStringSubmatch(string(readme))
	if block == nil {
		t.Fatal("README has no Go code")
	}
	if lines := strings.Count(block[1], "\n"); lines > 12 {
		t.Errorf("the reconcile in README has %d lines, more than 12", lines)
	}
	named := regexp.MustCompile(`operator of (\d+) lines\]\(([^)]+)\)`).FindStringSubmatch(string(readme))
	if named == nil {
		t.Fatal("README does not name the length of the operator")
	}
	program, err := os.ReadFile(named[2])
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(program), "\n"); strconv.Itoa(lines) != named[1] {
		t.Errorf("%s has %d lines, and README names %s", named[2], lines, named[1])
	}
}

// TestGuidePagesBeginAndEnd checks that each page of the guide begins with what its readers can do afterwards, ends with the next
// page, and stands in the list of pages.
func TestGuidePagesBeginAndEnd(t *testing.T) {
	t.Parallel()
	enterRoot()
	list, err := os.ReadFile("docs/guide/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/guide/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("the guide has no pages: %v", err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		if name == "README.md" {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		paragraphs := strings.Split(strings.TrimSpace(string(text)), "\n\n")
		if len(paragraphs) < 3 || !strings.HasPrefix(paragraphs[1], "After this page ") {
			t.Errorf(`%s: the first paragraph does not begin with "After this page"`, page)
		}
		next := regexp.MustCompile(`^Next: \[[^\]]+\]\(([a-z-]+\.md|README\.md)\)\.$`).FindStringSubmatch(paragraphs[len(paragraphs)-1])
		if next == nil || next[1] == name {
			t.Errorf(`%s does not end with "Next: [TITLE](PAGE)." alone in a paragraph`, page)
		}
		if !strings.Contains(string(list), "]("+name+") |") {
			t.Errorf("docs/guide/README.md has no row for %s", page)
		}
	}
}

// TestPackagesFitOnTwoScreens counts the lines that go doc prints for the packages that an author begins with. Two screens
// have 120 lines.
func TestPackagesFitOnTwoScreens(t *testing.T) {
	t.Parallel()
	enterRoot()
	for _, name := range []string{"kube", "controller", "operator", "yaretest"} {
		out, err := exec.CommandContext(t.Context(), "go", "doc", "./"+name).CombinedOutput()
		if err != nil {
			t.Fatalf("go doc ./%s: %v\n%s", name, err, out)
		}
		lines := strings.Count(string(out), "\n")
		if lines > 120 {
			t.Errorf("go doc prints %d lines for package %s, more than 120", lines, name)
		}
		t.Logf("%3d lines: %s", lines, name)
	}
}

// TestGuideLinksExist checks that the links between the pages of the guide, to pictures, and to other files of the
// project, lead to something.
func TestGuideLinksExist(t *testing.T) {
	t.Parallel()
	enterRoot()
	pages, err := filepath.Glob("docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md", "docs/comparison.md", "llms.txt") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`(?:\]\(|(?:src|srcset)=")([^)#"]+)(#[^)"]*)?[)"]`).FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil {
				t.Error(fmt.Errorf("%s: a link leads nowhere: %w", page, err))
			}
		}
	}
}

// TestFoldersOfLabAreModules checks that each folder of lab/ is a module of its own, so that nobody inherits its
// requirements, and has a row in lab/README.md.
func TestFoldersOfLabAreModules(t *testing.T) {
	t.Parallel()
	enterRoot()
	page, err := os.ReadFile("lab/README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("lab")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if name == "README.md" {
			continue
		}
		if _, err := os.Stat(filepath.Join("lab", name, "go.mod")); err != nil {
			t.Errorf("lab/%s is no module: %v", name, err)
		}
		if !strings.Contains(string(page), fmt.Sprintf("\n| [%s](%s) |", name, name)) {
			t.Errorf("lab/README.md has no row for lab/%s", name)
		}
	}
}
