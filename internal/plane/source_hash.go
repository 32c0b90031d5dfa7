package plane

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// errNoSource is the error for a folder without a file of source, for example because the folder was emptied meanwhile.
var errNoSource = errors.New("the folder holds no source")

// hashSource calls write with the name and the hash of each file that may be compiled into the program of the module in
// dir. It leaves out tests, hidden files such as those of editors, and what the go command itself ignores.
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
