package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The test program is the program itself when this variable is set: the environment of a call
// belongs to a process.
const asProgram = "YARE_IMAGE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// call runs the program, and returns its standard output and everything that it printed.
func call(t *testing.T, env []string, args ...string) (stdout, all string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), out.String() + errs.String(), err
}

// commitTime is when the program of the tests was committed.
const commitTime = "2026-03-04T05:06:07Z"

// beacon creates a repository with a small program, and returns a clone of it. Each call returns
// another folder with the same commit.
func beacon(t *testing.T) string {
	t.Helper()
	origin := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":       "module github.com/lights/beacon\n\ngo 1.26\n",
		"main.go":      "package main\n\nfunc main() { println(\"Fl(2) 10s\") }\n",
		"tagged.go":    "//go:build tagged\n\npackage main\n\nfunc init() { println(\"tagged\") }\n",
		"other/lib.go": "package other\n",
		"LICENSE":      "Permission is hereby granted, free of charge, to whoever sees the light\n",
		"NOTICE":       "This program has a lamp under the Apache License, version 2.0\n",
	} {
		path := filepath.Join(origin, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_AUTHOR_DATE="+commitTime,
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE="+commitTime)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("-C", origin, "init", "-q", "-b", "main")
	git("-C", origin, "add", ".")
	git("-C", origin, "commit", "-q", "-m", "first")
	clone := filepath.Join(t.TempDir(), "beacon")
	git("clone", "-q", origin, clone)
	return clone
}

// printed is the form of the standard output.
var printed = regexp.MustCompile(`^(\S+)@(sha256:[0-9a-f]{64}) ([0-9]+)\n$`)

// makeFile makes an image in a file, and returns the digest that was printed and the path.
func makeFile(t *testing.T, env []string, dir string, args ...string) (digest, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "image.tar")
	stdout, all, err := call(t, env, append(append([]string{"--output=" + path}, args...), dir)...)
	parts := printed.FindStringSubmatch(stdout)
	if err != nil || parts == nil {
		t.Fatalf("%v\n%s", err, all)
	}
	return parts[2], path
}

// The same commit gives the same digest: in another folder, under another name, and whatever the
// user has set for builds.
func TestSameCommitSameDigest(t *testing.T) {
	t.Parallel()
	first, _ := makeFile(t, nil, beacon(t))
	second, _ := makeFile(t, []string{"GOFLAGS=-tags=tagged -ldflags=-X=main.x=y", "CGO_ENABLED=1", "GOOS=plan9", "GOAMD64=v3", "TZ=Asia/Tokyo"},
		beacon(t), "--tag=registry.example.com/other:v2")
	if first != second {
		t.Errorf("two folders give %s and %s", first, second)
	}
	dir := beacon(t)
	if with, _ := makeFile(t, nil, dir, "--ca-certificates", "--platform=linux/amd64"); with == first {
		t.Error("certificates change nothing")
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { println(\"Q\") }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if changed, _ := makeFile(t, nil, dir); changed == first {
		t.Error("another program has the same digest")
	}
}

// untar returns the files of a tar archive, and their headers.
func untar(t *testing.T, r io.Reader) (files map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	files, headers = map[string][]byte{}, map[string]*tar.Header{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers[header.Name] = header
		if header.Typeflag == tar.TypeReg {
			if files[header.Name], err = io.ReadAll(archive); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// decode returns the JSON in data.
func decode[T any](t *testing.T, data []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// layout is an OCI image layout that was read from a file.
type layout struct {
	t     *testing.T
	files map[string][]byte
}

// blob returns the content that a descriptor describes, and checks it.
func (l layout) blob(d v1.Descriptor) []byte {
	l.t.Helper()
	content, ok := l.files["blobs/sha256/"+d.Digest.Hex]
	sum := sha256.Sum256(content)
	if !ok || int64(len(content)) != d.Size || hex.EncodeToString(sum[:]) != d.Digest.Hex {
		l.t.Fatalf("the blob %s (%s) has %d bytes, want %d", d.Digest, d.MediaType, len(content), d.Size)
	}
	return content
}

func TestFile(t *testing.T) {
	t.Parallel()
	digest, path := makeFile(t, nil, beacon(t))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := untar(t, bytes.NewReader(data))
	l := layout{t, files}
	if decode[struct{ ImageLayoutVersion string }](t, files["oci-layout"]).ImageLayoutVersion != "1.0.0" {
		t.Errorf("oci-layout: %s", files["oci-layout"])
	}
	top := decode[v1.IndexManifest](t, files["index.json"])
	if len(top.Manifests) != 1 || top.Manifests[0].Digest.String() != digest {
		t.Fatalf("index.json: %+v, printed %s", top, digest)
	}
	for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
		if got := top.Manifests[0].Annotations[key]; got != "docker.io/library/beacon:latest" {
			t.Errorf("%s is %q", key, got)
		}
	}
	index := decode[v1.IndexManifest](t, l.blob(top.Manifests[0]))
	var platforms []string
	for i, d := range index.Manifests {
		platforms = append(platforms, d.Platform.OS+"/"+d.Platform.Architecture)
		manifest := decode[v1.Manifest](t, l.blob(d))
		config := decode[v1.ConfigFile](t, l.blob(manifest.Config))
		if len(manifest.Layers) != 1 || len(config.RootFS.DiffIDs) != 1 || config.Created.Format(time.RFC3339) != commitTime {
			t.Errorf("%s: %d layers, created %s", platforms[i], len(manifest.Layers), config.Created)
		}
		content := l.blob(manifest.Layers[0])
		if d.Platform.OS == "linux" {
			checkImage(t, d, config, content)
			continue
		}
		if d.Annotations["vnd.docker.reference.digest"] != index.Manifests[i-1].Digest.String() {
			t.Errorf("the attestation %d is of %v", i, d.Annotations)
		}
		s := decode[statement](t, content)
		if s.Subject[0].Digest["sha256"] != index.Manifests[i-1].Digest.Hex || s.Predicate.Packages[0].Name != "github.com/lights/beacon" {
			t.Errorf("the bill of materials: %s", content)
		}
	}
	if want := []string{"linux/amd64", "unknown/unknown", "linux/arm64", "unknown/unknown"}; !slices.Equal(platforms, want) {
		t.Errorf("the platforms are %q, want %q", platforms, want)
	}
	checkDockerArchive(t, files, "docker.io/library/beacon:latest")
}

// checkDockerArchive reads the files as docker load does without containerd's image store: what is in
// manifest.json, each layer unpacked and compared with its digest in the configuration
// (github.com/moby/moby, image/tarexport/load.go).
func checkDockerArchive(t *testing.T, files map[string][]byte, tag string) {
	t.Helper()
	images := decode[[]struct {
		Config           string
		RepoTags, Layers []string
	}](t, files["manifest.json"])
	if len(images) != 1 || !slices.Equal(images[0].RepoTags, []string{tag}) {
		t.Fatalf("manifest.json: %s", files["manifest.json"])
	}
	config := decode[v1.ConfigFile](t, files[images[0].Config])
	if config.OS != "linux" || config.Architecture != "amd64" || config.RootFS.Type != "layers" {
		t.Errorf("the configuration of manifest.json is not of the first platform: %+v", config)
	}
	if len(images[0].Layers) != len(config.RootFS.DiffIDs) {
		t.Fatalf("there are %d layers, and the configuration has %d", len(images[0].Layers), len(config.RootFS.DiffIDs))
	}
	for i, name := range images[0].Layers {
		unzipped, err := gzip.NewReader(bytes.NewReader(files[name]))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, unzipped); err != nil {
			t.Fatal(err)
		}
		if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != config.RootFS.DiffIDs[i].String() {
			t.Errorf("the layer %s has the digest %s, and the configuration has %s", name, got, config.RootFS.DiffIDs[i])
		}
	}
}

// checkImage checks the image of one platform.
func checkImage(t *testing.T, d v1.Descriptor, config v1.ConfigFile, layer []byte) {
	t.Helper()
	c := config.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/beacon"}) || config.OS != "linux" || config.Architecture != d.Platform.Architecture {
		t.Errorf("the configuration: %+v", config)
	}
	labels := maps.Clone(c.Labels)
	if revision := labels["org.opencontainers.image.revision"]; len(revision) != 40 || !strings.Contains(labels["org.opencontainers.image.version"], revision[:12]) {
		t.Errorf("the labels: %q", labels)
	}
	delete(labels, "org.opencontainers.image.revision")
	delete(labels, "org.opencontainers.image.version")
	if want := map[string]string{
		"org.opencontainers.image.title":   "beacon",
		"org.opencontainers.image.created": commitTime,
		"org.opencontainers.image.source":  "https://github.com/lights/beacon",
	}; !maps.Equal(labels, want) {
		t.Errorf("the labels: %q, want %q", labels, want)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	files, headers := untar(t, unzipped)
	h := headers["beacon"]
	checkLicences(t, files, headers)
	if len(headers) != 1 || h == nil || h.Mode != 0o755 || h.Uid != 0 || h.ModTime.UTC().Format(time.RFC3339) != commitTime {
		t.Fatalf("the files of the image: %v", headers)
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != d.Platform.Architecture {
		return
	}
	program := filepath.Join(t.TempDir(), "beacon")
	if err := os.WriteFile(program, files["beacon"], 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil || string(out) != "Fl(2) 10s\n" {
		t.Errorf("the program prints %q, %v", out, err)
	}
}

// checkLicences checks the licence texts in an image, and removes them from its headers. Regression: the image had no text of the
// licences of its modules, which most of them demand.
func checkLicences(t *testing.T, files map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	var found []string
	for name, h := range headers {
		if !strings.HasPrefix(name, "licences/") {
			continue
		}
		delete(headers, name)
		if h.Typeflag == tar.TypeReg {
			found = append(found, regexp.MustCompile("@[^/]*").ReplaceAllString(name, "")+" "+strings.Fields(string(files[name]))[0])
		}
	}
	slices.Sort(found)
	want := []string{"licences/github.com/lights/beacon/LICENSE Permission", "licences/github.com/lights/beacon/NOTICE This", "licences/go/LICENSE Copyright"}
	for _, each := range want {
		if !slices.Contains(found, each) { // Go has a file PATENTS too
			t.Errorf("the licences are %q, without %q", found, each)
		}
	}
}

func TestRootCertificates(t *testing.T) {
	t.Parallel()
	_, path := makeFile(t, nil, beacon(t), "--ca-certificates", "--platform=linux/amd64")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blobs, _ := untar(t, bytes.NewReader(data))
	old := decode[[]struct{ Layers []string }](t, blobs["manifest.json"])
	unzipped, err := gzip.NewReader(bytes.NewReader(blobs[old[0].Layers[0]]))
	if err != nil {
		t.Fatal(err)
	}
	files, _ := untar(t, unzipped)
	count := 0
	for rest := files["etc/ssl/certs/ca-certificates.crt"]; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
	}
	if count < 50 {
		t.Errorf("%d certificates", count)
	}
}

func TestOptionsThatAreWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"DIR":                         "-o FILE.tar",
		"--output=x":                  "name one folder",
		"--output=x DIR DIR":          "name one folder",
		"--output=x DIR/file":         "is no folder",
		"--output=x --platform=a DIR": `"a" is not valid`,
		"--output=x --platform=linux/arm64/v8 DIR":   "is not valid",
		"--output=x --platform=windows/amd64 DIR":    "is not valid",
		"--output=x --platform=linux/amd64, DIR":     "is not valid",
		"--output=x --tag=A DIR":                     "that --tag gives is not valid",
		"--push=host/a@sha256:b DIR":                 "that --push gives is not valid",
		"--push=host/a --tag=b DIR":                  "leave out --tag",
		"--output=x --insecure DIR":                  "add --push REF",
		"--push=host/a --insecure --ca=DIR/file DIR": "leave out --insecure or --ca",
		"--push=host/a --ca=DIR/nothing DIR":         "no such file",
		"--push=host/a --ca=DIR/file DIR":            "holds no certificate",
		"--output=x --frobnicate DIR":                "frobnicate",
		"--output=x --platform=linux/amd64 DIR":      "go.mod",
		"--output=x --platform=linux/nonsense DIR":   "compile",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), strings.Fields(strings.ReplaceAll(args, "DIR", dir)), &stdout, &stderr)
			if status != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), want) {
				t.Errorf("status %d, want %q\n%s%s", status, want, stdout.String(), stderr.String())
			}
		})
	}
}

// A file that cannot be written, and a folder without a program, leave nothing behind.
func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, home := beacon(t), t.TempDir()
	for _, args := range [][]string{
		{"--output=" + filepath.Join(home, "no", "image.tar"), dir},
		{"--output=" + filepath.Join(home, "image.tar"), filepath.Join(dir, "other")},
	} {
		if _, all, err := call(t, []string{"TMPDIR=" + home}, append(args, "--platform=linux/amd64")...); err == nil {
			t.Errorf("%v succeeds:\n%s", args, all)
		}
	}
	entries, err := os.ReadDir(home)
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// Regression: the bill called the hash of go.sum, which is that of a list of files, the SHA256 of a file.
func TestBillOfMaterials(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8 X:jsonv2",
		Main:      debug.Module{Path: "example.org/beacon", Version: "v1.2.0"},
		Deps: []*debug.Module{
			{Path: "example.org/lens", Version: "v0.9.0+incompatible", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
			{Path: "example.org/lamp", Version: "v1.0.0", Replace: &debug.Module{Path: "../lamp"}},
			{Path: "example.org/oil", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/gas", Version: "v3.0.0"}},
		},
	}
	d := bill{
		name: "beacon", info: info, created: binary{info: info}.created(), certificates: []byte("roots"),
		licences: map[string]licence{"example.org/beacon": {expression: "MIT"}, "example.org/oil": {expression: "Apache-2.0 AND MIT"}},
	}.document(v1.Hash{Algorithm: "sha256", Hex: "abc"})
	var got []string
	for _, p := range d.Packages {
		line := strings.Join([]string{p.Name, p.Version, p.References[0].Locator, p.LicenseDeclared}, " ")
		for _, c := range p.Checksums {
			line += " " + c.Algorithm + " " + c.Value[:8]
		}
		if p.SourceInfo != "" {
			line += ": " + p.SourceInfo
		}
		got = append(got, line)
	}
	want := []string{
		"example.org/beacon v1.2.0 pkg:golang/example.org/beacon@v1.2.0 MIT",
		"example.org/lens v0.9.0+incompatible pkg:golang/example.org/lens@v0.9.0%2Bincompatible NOASSERTION: the hash of the module in go.sum is h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
		"example.org/lamp  pkg:golang/example.org/lamp NOASSERTION",
		"example.org/gas v3.0.0 pkg:golang/example.org/gas@v3.0.0 Apache-2.0 AND MIT",
		"stdlib 1.26.8 pkg:golang/stdlib@1.26.8 BSD-3-Clause",
	}
	certificates := got[len(got)-1]
	got = got[:len(got)-1]
	if !strings.HasPrefix(certificates, "ca-certificates ") || !strings.HasSuffix(certificates, " MPL-2.0 AND BSD-3-Clause SHA256 a4e3c20a") {
		t.Errorf("the certificates are %q", certificates)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the packages are %q, want %q", got, want)
	}
	if len(d.Relationships) != 6 || d.Relationships[0] != (spdxRelationship{"SPDXRef-DOCUMENT", "DESCRIBES", d.Packages[0].ID}) {
		t.Errorf("the relationships are %v", d.Relationships)
	}
	if d.Creation.Created != "1970-01-01T00:00:00Z" {
		t.Errorf("without a commit it was created %s", d.Creation.Created)
	}
}

// A provenance names the commit, Go and the modules, and is the same wherever the image is made.
func TestProvenance(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "provenance.json")
	makeFile(t, nil, beacon(t), "--platform=linux/amd64", "--provenance="+file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := decode[provenance](t, text)
	d := p.Definition
	if d.Parameters.Package != "github.com/lights/beacon" || !slices.Equal(d.Parameters.Platforms, []string{"linux/amd64"}) || p.Run.Builder.ID == "" {
		t.Errorf("the provenance is %s", text)
	}
	if first := d.Dependencies[0]; first.URI != "git+https://github.com/lights/beacon" || len(first.Digest["gitCommit"]) != 40 {
		t.Errorf("the source is %+v", first)
	}
	sum := dirHash("h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	if want := "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"; sum["dirHash"] != want {
		t.Errorf("the digest of a module is %v, want %s", sum, want)
	}
}
