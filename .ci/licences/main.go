// Command licences checks the licences of the modules that the modules in given folders require, directly or not:
//
//	go run . ../.. ../../controlplane
//
// A module passes if the files in its root that are called after a licence contain licences of the allowed list alone.
// A module that the go.mod of another one does not list provides no package to that module or to its tests.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// isAllowed reports whether a program under the Apache License may link a module with this licence, which is an SPDX
// identifier.
func isAllowed(licence string) bool {
	return slices.Contains([]string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}, licence)
}

// exceptions returns the modules that are not checked, with the reason.
func exceptions() map[string]string {
	return map[string]string{
		"github.com/opencontainers/go-digest": "LICENSE.docs is the licence of its documentation; the code is under Apache-2.0",
		"codeberg.org/go-fonts/liberation":    "the font of the plots of bench (OFL-1.1), which is in no program of a user",
		"github.com/ajstarks/svgo":            "draws the plots of bench (CC-BY-4.0), and is in no program of a user",
		"github.com/golang/freetype":          "draws the plots of bench (FreeType License), and is in no program of a user",
	}
}

// minPercent is which part of a licence file must be the text of licences, apart from copyright lines and
// introductions.
const minPercent = 60

func main() {
	if err := checkFolders(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// module is a module as "go mod download -json" prints it.
type module struct {
	Path, Version, Dir, Error string
}

// checkFolders checks the modules that the go.mod of each folder requires, and prints how many there are. An exception
// that no module needs is an error.
func checkFolders(folders []string, out io.Writer) error {
	var errs []error
	checked, excepted := make(map[string]bool), make(map[string]bool)
	for _, folder := range folders {
		modules, err := required(folder)
		if err != nil {
			errs = append(errs, err)
		}
		for _, m := range modules {
			if id := m.Path + "@" + m.Version; !checked[id] {
				checked[id] = true
				err := check(m)
				switch excepted[m.Path] = exceptions()[m.Path] != "" && err != nil; {
				case excepted[m.Path]:
					fmt.Fprintf(out, "%s: %s\n", id, exceptions()[m.Path])
				case err != nil:
					errs = append(errs, fmt.Errorf("%s, which %s requires: %w", id, filepath.Join(folder, "go.mod"), err))
				}
			}
		}
	}
	for path := range exceptions() {
		if !excepted[path] {
			errs = append(errs, fmt.Errorf("%s needs no exception: remove it from exceptions", path))
		}
	}
	fmt.Fprintf(out, "%d modules are required by %d go.mod files\n", len(checked), len(folders))
	return errors.Join(errs...)
}

// required downloads the modules that the go.mod of a folder requires, and returns them.
func required(folder string) ([]module, error) {
	command := exec.Command("go", "mod", "download", "-json")
	command.Dir = folder
	var problems bytes.Buffer
	command.Stderr = &problems
	text, err := command.Output()
	if err != nil && len(text) == 0 {
		return nil, fmt.Errorf("go mod download in %s: %w: %s", folder, err, problems.String())
	}
	var all []module
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var m module
		if err := decoder.Decode(&m); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the answer of go mod download in %s: %w", folder, err)
		}
		all = append(all, m)
	}
}

// check returns an error unless all licences of a module are allowed.
func check(m module) error {
	if m.Error != "" {
		return errors.New(m.Error)
	}
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return err
	}
	isLicensed := false
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !isLicenceFile(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, entry.Name()))
		if err != nil {
			return err
		}
		coverage := licensecheck.Scan(text)
		for _, match := range coverage.Match {
			if !isAllowed(match.ID) {
				return fmt.Errorf("%s has the licence %s, which is not in the list of allowed licences", entry.Name(), match.ID)
			}
		}
		isLicensed = isLicensed || coverage.Percent >= minPercent
	}
	if !isLicensed {
		return errors.New("no file in its root is the text of a known licence")
	}
	return nil
}

// isLicenceFile reports whether a file is called after a licence, such as LICENSE.txt, LICENCE-MIT or COPYING.
func isLicenceFile(name string) bool {
	if extension := filepath.Ext(name); extension == ".go" || extension == ".header" {
		return false
	}
	return slices.ContainsFunc([]string{"license", "licence", "copying", "unlicense"}, func(begin string) bool {
		return strings.HasPrefix(strings.ToLower(name), begin)
	})
}
