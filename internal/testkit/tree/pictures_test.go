package tree_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPicturesAreNewerThanTheirSources checks that each picture was made of the source that stands beside it, that each picture
// has a source, and that a page shows each picture, with a text for those who cannot see it.
func TestPicturesAreNewerThanTheirSources(t *testing.T) {
	t.Parallel()
	enterRoot()
	const folder = "lab/pictures/"
	made := map[string]string{ // the source of each picture
		"terminal.svg": "session.jsonl", "terminal-dark.svg": "session.jsonl", "terminal-still.svg": "session.jsonl", "terminal-still-dark.svg": "session.jsonl",
	}
	diagrams, err := filepath.Glob(folder + "*.d2")
	if err != nil || len(diagrams) == 0 {
		t.Fatalf("there are no sources of diagrams: %v", err)
	}
	for _, source := range diagrams {
		name := strings.TrimSuffix(filepath.Base(source), ".d2")
		made[name+".svg"], made[name+"-dark.svg"] = filepath.Base(source), filepath.Base(source)
	}
	pictures, err := filepath.Glob(folder + "*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, picture := range pictures {
		if made[filepath.Base(picture)] == "" {
			t.Errorf("%s has no source", picture)
		}
	}
	var pages strings.Builder
	names, err := filepath.Glob("docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(text)
	}
	for name, source := range made {
		picture, err := os.ReadFile(folder + name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(folder + source)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("<!-- SHA-256 of the source: %x -->", sha256.Sum256(text)); !strings.Contains(string(picture), want) {
			t.Errorf("%s%s was made of another %s: run go -C lab/pictures run .", folder, name, source)
		}
		switch base, isDark := strings.CutSuffix(name, "-dark.svg"); {
		case isDark && !regexp.MustCompile(`srcset="[^"]*pictures/`+base+`-dark\.svg"`).MatchString(pages.String()):
			t.Errorf("no page shows %s to readers of dark pages", name)
		case !isDark && base != "terminal-still.svg" && !regexp.MustCompile(`<img src="[^"]*pictures/`+base+`" width="\d+" alt="[^"]{40,}"`).MatchString(pages.String()):
			t.Errorf("no page shows %s with its width and a text of at least 40 letters", name)
		}
	}
}
