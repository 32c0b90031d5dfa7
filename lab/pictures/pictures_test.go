package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPictures makes all pictures again. They must be those in the folder, so a change of this program changes all pictures at
// once. Each picture is small XML with text in it, and needs nothing from elsewhere.
func TestPictures(t *testing.T) {
	t.Parallel()
	pictures, err := renderAll(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	if len(pictures) < 10 {
		t.Errorf("there are only %d pictures", len(pictures))
	}
	for name, picture := range pictures {
		inFolder, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(picture, inFolder) {
			t.Errorf("%s is another picture than its source gives: run go -C lab/pictures run .", name)
		}
		if len(picture) > 300_000 {
			t.Errorf("%s has %d KB, more than 300", name, len(picture)/1000)
		}
		if !bytes.Contains(picture, []byte("<text")) {
			t.Errorf("%s has no text", name)
		}
		for decoder := xml.NewDecoder(bytes.NewReader(picture)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s is no XML: %v", name, err)
				break
			}
		}
		text := regexp.MustCompile(`xmlns(:\w+)?="[^"]*"`).ReplaceAllString(string(picture), "")
		for _, forbidden := range []string{"<script", "http:", "https:", "<foreignObject", "@import"} {
			if strings.Contains(text, forbidden) {
				t.Errorf("%s contains %s", name, forbidden)
			}
		}
	}
}

// TestDiagramsAreReadableOnPhones checks that the smallest text of each diagram is ten pixels tall on a page of 375 pixels, which
// has 343 pixels for a picture.
func TestDiagramsAreReadableOnPhones(t *testing.T) {
	t.Parallel()
	const room, smallest = 343, 10
	sources, err := filepath.Glob("*.d2")
	if err != nil || len(sources) == 0 {
		t.Fatalf("there are no sources of diagrams: %v", err)
	}
	for _, source := range sources {
		name := strings.TrimSuffix(source, ".d2") + ".svg"
		picture, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		width := regexp.MustCompile(`viewBox="0 0 (\d+) \d+"`).FindSubmatch(picture)
		sizes := regexp.MustCompile(`font-size:(\d+)px`).FindAllSubmatch(picture, -1)
		if width == nil || len(sizes) == 0 {
			t.Fatalf("%s has no width, or no size of a text", name)
		}
		scale := min(1, room/number(t, width[1]))
		for _, size := range sizes {
			if tall := number(t, size[1]) * scale; tall < smallest {
				t.Errorf("%s is %s wide: text of %s pixels has %.1f on a phone, want %d", name, width[1], size[1], tall, smallest)
				break
			}
		}
	}
}

// number returns the number that digits are.
func number(t *testing.T, digits []byte) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(string(digits), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFilm checks that the film of the session takes about twenty seconds, shows what README says about it, and stands still on
// request.
func TestFilm(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(recordFile)
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFilm(text)
	if err != nil {
		t.Fatal(err)
	}
	if f.length < 15 || f.length > 22 {
		t.Errorf("the film takes %.1f seconds", f.length)
	}
	moving := string(f.render(palettes()[0], true))
	for _, want := range []string{"yare new ../web-app", "yare dev .", "replicas: 5", "delete deployment hello", "(Deployment default/hello deleted)", "5/5", "@media (prefers-reduced-motion:reduce)"} {
		if !strings.Contains(moving, strings.ReplaceAll(want, "'", "&#39;")) {
			t.Errorf("the film does not contain %q", want)
		}
	}
	if still := string(f.render(palettes()[0], false)); strings.Contains(still, "animation") || !strings.Contains(still, "5/5") {
		t.Error("the still picture moves, or lacks the last frame")
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		writes []string
		want   []string
	}{
		"lines":             {[]string{"one\r\ntwo\r\n"}, []string{"one", "two", ""}},
		"a line is erased":  {[]string{"building", "\r\x1b[Kready\r\n"}, []string{"ready", "", ""}},
		"a long line wraps": {[]string{"123456789"}, []string{"12345678", "9", ""}},
		"it scrolls":        {[]string{"1\r\n2\r\n3\r\n4"}, []string{"2", "3", "4"}},
		"parts":             {[]string{"\x1b[3", "6mya\xc3", "\xa4\x1b[0m."}, []string{"yaä.", "", ""}},
		"tabs, backspaces":  {[]string{"a\tb\b \bc"}, []string{"a       ", "c", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScreen(3, 8)
			for _, text := range test.writes {
				s.write(text)
			}
			for i, got := range s.lines() {
				plainText := regexp.MustCompile(`[pda]([^\x00]*)\x00`).ReplaceAllString(string(got), "$1")
				if plainText != strings.TrimRight(test.want[i], " ") {
					t.Errorf("line %d is %q, want %q", i, plainText, test.want[i])
				}
			}
		})
	}
	s := newScreen(1, 20)
	s.write("\x1b[36myare:\x1b[0m \x1b[2mlater\x1b[0m")
	if got := s.lines()[0]; got != "ayare:\x00p \x00dlater\x00" {
		t.Errorf("the styles are %q", got)
	}
	if got := markup("p$ ls <a>\x00"); got != `<tspan class="d">$ </tspan><tspan class="c">ls &lt;a&gt;</tspan>` {
		t.Errorf("the markup is %s", got)
	}
}
