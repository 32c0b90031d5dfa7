// This program writes modules of a release into a folder, as a module proxy serves them
// (https://go.dev/ref/mod#goproxy-protocol). It reads the files from the tags of this repository.
//
//	go run .ci/release/proxy.go FOLDER v0.1.0 . controlplane image realnode
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: go run .ci/release/proxy.go FOLDER VERSION MODULE...")
		os.Exit(2)
	}
	for _, folder := range os.Args[3:] {
		if err := write(os.Args[1], os.Args[2], path.Clean(folder)); err != nil {
			fmt.Fprintf(os.Stderr, "write the module in %s: %v\n", folder, err)
			os.Exit(1)
		}
	}
}

// write writes the module in a folder of the repository.
func write(proxy, version, folder string) error {
	tag, subfolder := path.Join(folder, version), folder
	if folder == "." {
		tag, subfolder = version, ""
	}
	gomod, err := exec.Command("git", "show", tag+":"+path.Join(folder, "go.mod")).Output()
	if err != nil {
		return fmt.Errorf("the tag %s: %w", tag, err)
	}
	written, err := exec.Command("git", "log", "-1", "--format=%cI", tag).Output()
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339+"\n", string(written))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": at.UTC()})
	if err != nil {
		return err
	}
	name := module.Version{Path: modfile.ModulePath(gomod), Version: version}
	dir := filepath.Join(proxy, filepath.FromSlash(name.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(
		zip.CreateFromVCS(archive, name, ".", tag, subfolder),
		archive.Close(),
		os.WriteFile(filepath.Join(dir, version+".mod"), gomod, 0o644),
		os.WriteFile(filepath.Join(dir, version+".info"), info, 0o644),
		os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o644),
	)
}
