// Command pictures makes the pictures of README and of the guide, each for light and for dark pages:
//
//	go -C lab/pictures run .           # all pictures, from the sources in this folder
//	go -C lab/pictures run . -record   # records the session of the terminal first, which takes two minutes
//
// A file NAME.d2 is the source of a diagram, in the language of D2 (https://d2lang.com). The file session.jsonl is the
// record of a session in two terminals. Each picture contains the hash of its source. A test of the root package
// compares them.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	isRecording := flag.Bool("record", false, "record the session of the terminal first")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *isRecording); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, isRecording bool) error {
	if isRecording {
		if err := record(ctx, recordFile); err != nil {
			return fmt.Errorf("record the session: %w", err)
		}
	}
	pictures, err := renderAll(ctx, ".")
	if err != nil {
		return err
	}
	for name, content := range pictures {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d KB\n", name, (len(content)+999)/1000)
	}
	return nil
}

// renderAll returns the content of each picture whose source is in a folder, by the name of the file.
func renderAll(ctx context.Context, folder string) (map[string][]byte, error) {
	pictures := make(map[string][]byte)
	sources, err := filepath.Glob(filepath.Join(folder, "*.d2"))
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(source), ".d2")
		rendered, err := renderDiagram(ctx, string(text), palettes())
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", source, err)
		}
		for i, p := range palettes() {
			pictures[name+p.suffix+".svg"] = withSourceHash(rendered[i], text)
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, recordFile))
	if err != nil {
		return nil, err
	}
	film, err := newFilm(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", recordFile, err)
	}
	for _, p := range palettes() {
		pictures["terminal"+p.suffix+".svg"] = withSourceHash(film.render(p, true), text)
		pictures["terminal-still"+p.suffix+".svg"] = withSourceHash(film.render(p, false), text)
	}
	return pictures, nil
}

// withSourceHash returns a picture with a last line that has the hash of the source.
func withSourceHash(picture, source []byte) []byte {
	hash := sha256.Sum256(source)
	return fmt.Appendf(nil, "%s\n<!-- SHA-256 of the source: %s -->\n",
		strings.TrimSpace(string(picture)), hex.EncodeToString(hash[:]))
}
