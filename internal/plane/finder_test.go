package plane

import (
	"archive/zip"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/testkit/executable"
)

func TestPrebuiltBinary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"plain": "text"})
	binary := fakeBinary(t)
	for _, test := range []struct{ name, value, want, complaint string }{
		{"it is used", binary, binary, ""},
		{"missing", filepath.Join(dir, "nothing"), "", "there is no such file"},
		{"not executable", filepath.Join(dir, "plain"), "", "not an executable file"},
		{"a folder", dir, "", "not an executable file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := Finder{Dir: dir, Env: environ("YARE_CONTROLPLANE=" + test.value)}
			path, err := f.Find(t.Context())
			if test.complaint == "" {
				if err != nil || path != test.want {
					t.Fatalf("Find() = %q, %v; want %q", path, err, test.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.complaint) || !strings.Contains(err.Error(), "YARE_CONTROLPLANE") {
				t.Fatalf("Find() = %v; want an error with %q that names the variable", err, test.complaint)
			}
		})
	}
}

func TestSourceBesideTheClone(t *testing.T) {
	t.Parallel()
	root := clone(t)
	cache := t.TempDir()
	var output safeBuffer
	f := Finder{Dir: root, Env: environ(), Cache: cache, Console: console.New(&output, "yare")}
	path, err := f.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != "the small one\n" {
		t.Fatalf("the binary says %q, %v", out, err)
	}
	if !strings.Contains(output.String(), "compiling the control plane") || !strings.Contains(output.String(), "happens once") {
		t.Errorf("progress does not say what is done:\n%s", output.String())
	}
	before := output.String()
	again, err := f.Find(t.Context())
	if err != nil || again != path {
		t.Fatalf("the second Find() = %q, %v; want %q", again, err, path)
	}
	if output.String() != before {
		t.Errorf("a binary that is there is found with words: %q", strings.TrimPrefix(output.String(), before))
	}
	leftovers, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "build-*"))
	if len(leftovers) > 0 {
		t.Errorf("the build left %v", leftovers)
	}
}

func TestSourceByReplaceAndWorkspace(t *testing.T) {
	t.Parallel()
	root := clone(t)
	want := filepath.Join(root, "controlplane")
	replaced := t.TempDir()
	writeTree(t, replaced, map[string]string{
		"go.mod": "module example.com/stranger\n\ngo 1.26\n\nrequire " + ModulePath + " v0.0.0\n\nreplace " + ModulePath + " => " + root + "\n",
	})
	workspace := t.TempDir()
	writeTree(t, workspace, map[string]string{
		"go.work":   "go 1.26\n\nuse ./op\nuse " + root + "\n",
		"op/go.mod": "module example.com/op\n\ngo 1.26\n",
	})
	for name, dir := range map[string]string{"replace": replaced, "workspace": filepath.Join(workspace, "op")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, err := sourceFinder{module: ControlPlane(), dir: dir, env: environ()}.find(t.Context())
			if err != nil || src.dir != want {
				t.Fatalf("find() = %+v, %v; want the folder %s", src, err, want)
			}
		})
	}
}

func TestNowhereToBeFound(t *testing.T) {
	t.Parallel()
	half := t.TempDir() // A replacement without the nested module.
	writeTree(t, half, map[string]string{"go.mod": "module " + ModulePath + "\n\ngo 1.26\n"})
	stranger := t.TempDir()
	writeTree(t, stranger, map[string]string{
		"go.mod": "module example.com/stranger\n\ngo 1.26\n\nrequire " + ModulePath + " v0.0.0\n\nreplace " + ModulePath + " => " + half + "\n",
	})
	broken := t.TempDir()
	writeTree(t, broken, map[string]string{"go.mod": "modul example.com/stranger\n"})
	for _, test := range []struct{ name, dir, want string }{
		{"a development version outside of any module", t.TempDir(), "development version"},
		{"half a clone", half, "whole clone"},
		{"replaced by half a clone", stranger, "whole clone"},
		{"a broken go.mod", broken, "go.mod"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := Finder{Dir: test.dir, Env: environ(), ignoresClone: true}.Find(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("Find() = %v; want an error with %q", err, test.want)
			}
		})
	}
}

// A published version: the proxy is a folder.
func TestPublishedVersion(t *testing.T) {
	t.Parallel()
	const version = "v1.2.3"
	proxy := t.TempDir()
	publish(t, proxy, filepath.Join(clone(t), "controlplane"), module.Version{Path: nestedPath, Version: version})
	publish(t, proxy, halfClone(t), module.Version{Path: ModulePath, Version: version})
	env := environ("GOPROXY=file://"+proxy, "GONOSUMDB=*", "GONOSUMCHECK=1", "GOFLAGS=-modcacherw", "GOMODCACHE="+t.TempDir(), "GONOPROXY=none", "GOSUMDB=off")
	stranger := t.TempDir()
	writeTree(t, stranger, map[string]string{
		"go.mod": "module example.com/stranger\n\ngo 1.26\n\nrequire " + ModulePath + " " + version + "\n",
	})
	t.Cleanup(func() { // The module cache is not writable.
		clean := exec.Command("go", "clean", "-modcache")
		clean.Env = env
		_ = clean.Run()
	})
	cache := t.TempDir()
	paths := map[string]string{}
	for name, f := range map[string]Finder{
		"required":    {Dir: stranger, Env: env, Cache: cache},
		"our own":     {Dir: t.TempDir(), Env: env, Cache: cache, version: version},
		"found again": {Dir: stranger, Env: append(env, "GOPROXY=off"), Cache: cache},
	} {
		if name == "found again" {
			defer func() {
				path, err := f.Find(context.Background())
				if err != nil || path != paths["required"] {
					t.Errorf("without a network: %q, %v; want %q", path, err, paths["required"])
				}
			}()
			continue
		}
		path, err := f.Find(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		paths[name] = path
		if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != "the small one\n" {
			t.Fatalf("%s: the binary says %q, %v", name, out, err)
		}
	}
	if paths["required"] != paths["our own"] {
		t.Errorf("one version has two binaries: %v", paths)
	}
	_, err := Finder{Dir: t.TempDir(), Env: env, Cache: cache, version: "v9.9.9"}.Find(t.Context())
	if err == nil || !strings.Contains(err.Error(), "v9.9.9") || !strings.Contains(err.Error(), "GOPROXY") {
		t.Errorf("a version that does not exist: %v", err)
	}
}

// Each program has a module, a binary, a cache and a variable of its own.
func TestPrograms(t *testing.T) {
	t.Parallel()
	root := clone(t)
	writeTree(t, root, map[string]string{
		"image/go.mod":  "module " + ModulePath + "/image\n\ngo 1.26\n",
		"image/main.go": "package main\n\nfunc main() { println(\"an image\") }\n",
	})
	home := t.TempDir()
	var output safeBuffer
	f := Finder{Module: ImageBuilder(), Dir: root, Env: environ(), Cache: home, Console: console.New(&output, "yare")}
	path, err := f.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != "an image\n" || filepath.Base(path) != "image" {
		t.Errorf("%s says %q, %v", path, out, err)
	}
	if !strings.Contains(output.String(), "compiling the image builder") {
		t.Errorf("the progress does not name the program:\n%s", output.String())
	}
	if again, err := f.Find(t.Context()); err != nil || again != path {
		t.Errorf("the second Find() = %q, %v; want %q", again, err, path)
	}
	binary := fakeBinary(t)
	f.Env = environ("YARE_IMAGE="+binary, "YARE_CONTROLPLANE=/nothing")
	if path, err := f.Find(t.Context()); err != nil || path != binary {
		t.Errorf("a prebuilt binary: %q, %v", path, err)
	}
	f.Env, f.Dir = environ(), clone(t)
	if _, err := f.Find(t.Context()); err == nil || !strings.Contains(err.Error(), "without a folder image") || !strings.Contains(err.Error(), "YARE_IMAGE") {
		t.Errorf("a clone without the program: %v", err)
	}
}

func halfClone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"go.mod": "module " + ModulePath + "\n\ngo 1.26\n", "yare.go": "package yare\n"})
	return dir
}

// publish puts a module into a proxy that is a folder.
func publish(t *testing.T, proxy, dir string, m module.Version) {
	t.Helper()
	at := filepath.Join(proxy, m.Path, "@v")
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	writeTree(t, at, map[string]string{
		"list":              m.Version + "\n",
		m.Version + ".mod":  string(gomod),
		m.Version + ".info": `{"Version":"` + m.Version + `"}`,
	})
	file, err := os.Create(filepath.Join(at, m.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := modzip.CreateFromDir(file, m, dir); err != nil {
		t.Fatal(err)
	}
	if r, err := zip.OpenReader(file.Name()); err != nil {
		t.Fatal(err)
	} else {
		_ = r.Close()
	}
}

func TestTenProcessesBuildOnce(t *testing.T) {
	t.Parallel()
	root := clone(t)
	// The build takes long enough for all to meet, and leaves a line in a file each time
	// the compiler sees the source; the go command's own cache is a new one.
	builds := filepath.Join(t.TempDir(), "builds")
	tool := t.TempDir()
	executable.Write(t, filepath.Join(tool, "go"),
		"#!/bin/sh\nif [ \"$1\" = build ]; then echo build >>"+builds+"; fi\nexec "+realGo(t)+" \"$@\"\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	env := environ("PATH="+tool+string(filepath.ListSeparator)+os.Getenv("PATH"), helperVariable+"=find")
	var all sync.WaitGroup
	paths := make([]string, 10)
	for i := range paths {
		all.Go(func() {
			cmd := exec.Command(self, cache)
			cmd.Dir, cmd.Env = root, env
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			paths[i] = string(out)
		})
	}
	all.Wait()
	for _, path := range paths {
		if path != paths[0] || path == "" {
			t.Fatalf("they found different binaries: %q", paths)
		}
	}
	data, err := os.ReadFile(builds)
	if err != nil || string(data) != "build\n" {
		t.Errorf("builds: %q, %v; want one", data, err)
	}
}

func realGo(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompileErrorIsReturned(t *testing.T) {
	t.Parallel()
	root := clone(t)
	writeTree(t, root, map[string]string{"controlplane/main.go": "package main\n\nfunc main() { nothing() }\n"})
	f := Finder{Dir: root, Env: environ(), Cache: t.TempDir()}
	_, err := f.Find(t.Context())
	if err == nil || !strings.Contains(err.Error(), "undefined: nothing") {
		t.Fatalf("Find() = %v; want what the compiler output", err)
	}
	writeTree(t, root, map[string]string{"controlplane/main.go": "package main\n\nfunc main() {}\n"})
	if _, err := f.Find(t.Context()); err != nil {
		t.Fatalf("mended: %v", err)
	}
}

// A build takes minutes, and sources are edited in minutes: a binary is kept only under
// the key of what it was built from.
func TestSourceChangesMeanwhile(t *testing.T) {
	t.Parallel()
	root := clone(t)
	main := filepath.Join(root, "controlplane", "main.go")
	tool := t.TempDir()
	// The first build edits the source when it is done.
	executable.Write(t, filepath.Join(tool, "go"), "#!/bin/sh\n"+realGo(t)+" \"$@\" || exit\n"+
		"if [ \"$1\" = build ] && [ ! -e "+tool+"/edited ]; then touch "+tool+"/edited; sed -i.orig s/small/new/ "+main+"; rm "+main+".orig; fi\n")
	cache := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, cache)
	cmd.Dir = root
	cmd.Env = environ("PATH="+tool+string(filepath.ListSeparator)+os.Getenv("PATH"), helperVariable+"=find")
	path, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(strings.TrimSpace(string(path))).CombinedOutput(); err != nil || string(out) != "the new one\n" {
		t.Errorf("the binary says %q, %v", out, err)
	}
	if binaries, _ := filepath.Glob(filepath.Join(cache, "*", binaryName)); len(binaries) != 1 {
		t.Errorf("kept: %v", binaries)
	}
}

func TestGoCommandMissing(t *testing.T) {
	// Not parallel: PATH belongs to the process.
	t.Setenv("PATH", t.TempDir())
	_, err := Finder{Dir: t.TempDir(), Env: environ()}.Find(t.Context())
	if err == nil || !strings.Contains(err.Error(), "install Go") {
		t.Fatalf("Find() = %v; want advice", err)
	}
}
