package plane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// key returns the name of the binary that a build would make. It changes with the source, the Go
// version, the platform and the flags.
func (b builder) key(ctx context.Context) (string, error) {
	goVersion, err := b.goVersion(ctx)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	// Each part ends with a zero byte, so that no two lists of parts look the same.
	write := func(parts ...string) {
		for _, part := range parts {
			_, _ = io.WriteString(hash, part+"\x00")
		}
	}
	write("1", goVersion, runtime.GOOS, runtime.GOARCH)
	if b.src.version != "" {
		write("version", b.src.version)
		write(buildFlags("")...)
	} else {
		write("source")
		write(buildFlags(b.kubernetes)...)
		if err := hashSource(b.src.dir, write); err != nil {
			return "", fmt.Errorf("reading the source of %s in %s: %w", b.program.Title, b.src.dir, err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:32], nil
}

// goVersion returns the version of Go that would build the source, whose go.mod may ask for
// another version than the installed one.
func (b builder) goVersion(ctx context.Context) (string, error) {
	dir := b.src.dir
	if dir == "" {
		dir = os.TempDir()
	}
	out, err := b.tool.output(ctx, dir, b.tool.buildEnv(), "env", "GOVERSION")
	if err != nil {
		return "", fmt.Errorf("asking the go command for its version: %w", err)
	}
	return strings.TrimSpace(out), nil
}

// hashSource writes names and contents of everything that may go into a build of the
// module in dir: all but tests, hidden files (an editor's, for one) and what the go
// command itself ignores.
func hashSource(dir string, write func(...string)) error {
	found := false
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path == dir {
				return nil
			}
			if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return filepath.SkipDir // A module of its own.
			}
			return nil
		}
		if !entry.Type().IsRegular() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		write(filepath.ToSlash(relative), hex.EncodeToString(sum[:]))
		found = true
		return nil
	})
	if err == nil && !found {
		return errNoSource
	}
	return err
}
