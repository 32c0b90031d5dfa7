package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// binary is the program for one platform.
type binary struct {
	platform platform
	// name is the name that go build gives the program.
	name string
	// content is the file.
	content []byte
	info    *debug.BuildInfo
	// licences has the licences of the modules, by their paths: see moduleLicences.
	licences map[string]licence
}

// build compiles the main package in dir for a platform.
func build(ctx context.Context, dir string, p platform, scratch string) (binary, error) {
	out := filepath.Join(scratch, p.arch)
	// go build writes into an existing folder, under the name of the program.
	if err := os.Mkdir(out, 0o755); err != nil {
		return binary{}, fmt.Errorf("make a folder for the binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=auto", "-ldflags=-s -w",
		"-o", out+string(filepath.Separator), ".")
	cmd.Dir, cmd.Env = dir, buildEnvironment(os.Environ(), p)
	// An interrupted go command removes its work folder.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if text, err := cmd.CombinedOutput(); err != nil {
		return binary{}, buildError(ctx, dir, p, err, text)
	}
	b := binary{platform: p}
	entries, err := os.ReadDir(out)
	if err == nil && len(entries) != 1 {
		err = fmt.Errorf("it made %d files", len(entries))
	}
	if err == nil {
		b.name = entries[0].Name()
		b.content, err = os.ReadFile(filepath.Join(out, b.name))
	}
	if err == nil {
		b.info, err = buildinfo.Read(bytes.NewReader(b.content))
	}
	if err == nil {
		b.licences, err = moduleLicences(ctx, dir, cmd.Env)
	}
	if err != nil {
		return binary{}, fmt.Errorf("read what go build made of %s for %s: %w", dir, p, err)
	}
	return b, nil
}

// buildEnvironment returns the environment of a build for a platform. It keeps the variables that
// select the sources of modules and the toolchain. Other variables that change a binary are fixed
// or dropped.
func buildEnvironment(environ []string, p platform) []string {
	fixed := []string{
		"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + p.arch, "GO111MODULE=on",
		"GOAMD64=v1", "GOARM64=v8.0", "GOARM=7",
		// The go command takes an empty variable for one that is not set, and looks it up in
		// go env -w. The flag is given anyway.
		"GOFLAGS=-trimpath",
	}
	dropped := map[string]bool{"GOEXPERIMENT": true, "PWD": true}
	for _, variable := range fixed {
		name, _, _ := strings.Cut(variable, "=")
		dropped[name] = true
	}
	var kept []string
	for _, variable := range environ {
		if name, _, _ := strings.Cut(variable, "="); !dropped[name] {
			kept = append(kept, variable)
		}
	}
	return append(kept, fixed...)
}

// buildError returns the error of a build that failed, with what the go command printed.
func buildError(ctx context.Context, dir string, p platform, err error, output []byte) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	text := strings.TrimSpace(string(output))
	if strings.Contains(text, "error obtaining VCS status") {
		text += "\ngit does not trust the folder, if another user owns it: git config --global --add safe.directory FOLDER"
	}
	if text != "" {
		text = "\n" + text
	}
	return fmt.Errorf("compile %s for %s: %w%s", dir, p, err, text)
}

// licenceTexts returns the licence texts of the modules and of Go that the binary was compiled from, by their paths in
// the image, such as licences/github.com/a/b@v1.2.3/LICENSE. It also returns the modules without a text.
func (b binary) licenceTexts() (files map[string][]byte, missing []string) {
	files = make(map[string][]byte)
	add := func(key, name, version string) {
		texts := b.licences[key].texts
		if len(texts) == 0 {
			missing = append(missing, name)
		}
		if version != "" && version != "(devel)" {
			name += "@" + version
		}
		for file, text := range texts {
			files["licences/"+name+"/"+file] = text
		}
	}
	add(goLicence, "go", "")
	add(b.info.Main.Path, b.info.Main.Path, b.info.Main.Version)
	for _, m := range b.info.Deps {
		name, version, _ := compiledModule(m)
		add(m.Path, name, version)
	}
	return files, missing
}

// setting returns a setting of the build, or "" if the binary does not have it.
func (b binary) setting(key string) string {
	for _, s := range b.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// created returns the time of the commit that the binary was built from, or 1970 if it is not known.
func (b binary) created() time.Time {
	t, err := time.Parse(time.RFC3339, b.setting("vcs.time"))
	if err != nil {
		return time.Unix(0, 0).UTC()
	}
	return t.UTC()
}

// labels returns the labels of the image of the binary, by the names of the OCI image specification.
func (b binary) labels() map[string]string {
	const prefix = "org.opencontainers.image."
	labels := map[string]string{
		prefix + "title":   b.name,
		prefix + "created": b.created().Format(time.RFC3339),
	}
	if version := b.info.Main.Version; version != "" && version != "(devel)" {
		labels[prefix+"version"] = version
	}
	if revision := b.setting("vcs.revision"); revision != "" {
		labels[prefix+"revision"] = revision
	}
	if source := sourceOf(b.info.Main.Path); source != "" {
		labels[prefix+"source"] = source
	}
	return labels
}

// image returns the image of the binary.
func (b binary) image(certificates bool) (v1.Image, error) {
	created := v1.Time{Time: b.created()}
	content, err := b.layerContent(certificates)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression),
		tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	return newImage(&v1.ConfigFile{
		OS: "linux", Architecture: b.platform.arch, Created: created,
		Config: v1.Config{User: user, WorkingDir: "/", Entrypoint: []string{"/" + b.name}, Labels: b.labels()},
	}, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "yare image"}})
}

// layerContent returns the files of an image as a tar archive: the binary, the licences of what it was compiled from
// and, if they are asked for, the root certificates.
func (b binary) layerContent(certificates bool) ([]byte, error) {
	files, _ := b.licenceTexts()
	if certificates {
		files[certificatesPath] = rootCertificates()
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	folders := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for i := range name {
			if folder := name[:i+1]; name[i] == '/' && !folders[folder] {
				folders[folder] = true
				err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755, ModTime: b.created()})
				if err != nil {
					return nil, err
				}
			}
		}
		if err := writeFile(w, name, 0o644, b.created(), files[name]); err != nil {
			return nil, err
		}
	}
	if err := writeFile(w, b.name, 0o755, b.created(), b.content); err != nil {
		return nil, err
	}
	err := w.Close()
	return archive.Bytes(), err
}

// attestation returns the bill of materials of the binary as BuildKit attaches it to an image: a
// manifest in the same index. So a copy or a signature of the index includes both.
func (b binary) attestation(image v1.Hash, certificates bool) (v1.Image, error) {
	materials := bill{name: b.name, info: b.info, created: b.created(), licences: b.licences}
	if certificates {
		materials.certificates = rootCertificates()
	}
	statement, err := materials.statement(image)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: b.created()}
	return newImage(&v1.ConfigFile{OS: "unknown", Architecture: "unknown", Created: created}, mutate.Addendum{
		Layer:       static.NewLayer(statement, "application/vnd.in-toto+json"),
		Annotations: map[string]string{"in-toto.io/predicate-type": spdxPredicate},
		History:     v1.History{Created: created, CreatedBy: "yare image"},
	})
}

// sourceOf returns the page of the repository that a module is in, or "" if its path does not name it.
func sourceOf(module string) string {
	parts := strings.Split(module, "/")
	switch parts[0] {
	case "github.com", "gitlab.com", "codeberg.org", "bitbucket.org":
		if len(parts) >= 3 {
			return "https://" + strings.Join(parts[:3], "/")
		}
	}
	return ""
}
