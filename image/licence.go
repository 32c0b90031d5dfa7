package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// unknownLicence stands in a bill of materials for a licence that is not known (SPDX 2.3, section 7.15).
const unknownLicence = "NOASSERTION"

// licence is the licence of a module.
type licence struct {
	// expression is an SPDX expression, such as "Apache-2.0 AND MIT", or unknownLicence.
	expression string
	// texts holds the contents of the files with licences and notices, by the names of the files.
	texts map[string][]byte
}

// goLicence is the key of the licence of Go and its standard library among those of modules.
const goLicence = "std"

// moduleLicences returns the licences of the modules that the main package in dir depends on, by the paths of the
// modules, and that of Go by goLicence. A module whose folder is not known is left out.
func moduleLicences(ctx context.Context, dir string, environ []string) (map[string]licence, error) {
	root := exec.CommandContext(ctx, "go", "env", "GOROOT")
	root.Dir, root.Env = dir, environ
	goroot, err := root.Output()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-mod=readonly", "-json=Path,Dir,Replace", "all")
	cmd.Dir, cmd.Env = dir, environ
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	licences := map[string]licence{goLicence: licenceIn(strings.TrimSpace(string(goroot)))}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var module struct {
			Path, Dir string
			Replace   *struct{ Dir string }
		}
		if err := decoder.Decode(&module); errors.Is(err, io.EOF) {
			return licences, nil
		} else if err != nil {
			return nil, err
		}
		if module.Replace != nil && module.Replace.Dir != "" {
			module.Dir = module.Replace.Dir
		}
		if module.Dir != "" {
			licences[module.Path] = licenceIn(module.Dir)
		}
	}
}

// licenceIn returns the licence that the files of a folder contain. A licence may demand that its text and the notices
// of the authors go with a binary.
func licenceIn(dir string) licence {
	var found []string
	texts := make(map[string][]byte)
	for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "NOTICE*", "PATENTS*"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is valid
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil {
				texts[filepath.Base(file)] = text
				if strings.HasPrefix(pattern, "LICEN") || strings.HasPrefix(pattern, "COPYING") {
					found = append(found, licencesOf(string(text))...)
				}
			}
		}
	}
	return licence{joinLicences(found), texts}
}

// licencesOf returns the licences whose wording is in a text.
func licencesOf(text string) (found []string) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	has := func(part string) bool { return strings.Contains(text, part) }
	if has("apache license") && has("version 2.0") {
		found = append(found, "Apache-2.0")
	}
	if has("mozilla public license") && has("2.0") {
		found = append(found, "MPL-2.0")
	}
	if has("permission is hereby granted, free of charge") {
		found = append(found, "MIT")
	}
	if has("permission to use, copy, modify, and/or distribute this software") ||
		has("permission to use, copy, modify, and distribute this software") {
		found = append(found, "ISC")
	}
	if has("redistribution and use in source and binary forms") {
		if has("neither the name") || has("may not be used to endorse") {
			found = append(found, "BSD-3-Clause")
		} else {
			found = append(found, "BSD-2-Clause")
		}
	}
	return found
}

// joinLicences returns an SPDX expression for all licences, or unknownLicence for none.
func joinLicences(all []string) string {
	var different []string
	isSeen := make(map[string]bool)
	for _, licence := range all {
		if !isSeen[licence] {
			isSeen[licence] = true
			different = append(different, licence)
		}
	}
	if len(different) == 0 {
		return unknownLicence
	}
	return strings.Join(different, " AND ")
}
