package plane

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
)

// minorFiles are further files of a control plane that says which minor version of Kubernetes it has.
func minorFiles() map[string]string {
	return map[string]string{
		"controlplane/kubernetes-1.36.mod": "module " + nestedPath + "\n\ngo 1.26\n",
		"controlplane/kubernetes-1.36.sum": "",
		"controlplane/main.go":             "package main\n\nfunc main() { println(minor) }\n",
		"controlplane/default.go":          "//go:build !kubernetes1.36\n\npackage main\n\nconst minor = \"the default\"\n",
		"controlplane/older.go":            "//go:build kubernetes1.36\n\npackage main\n\nconst minor = \"1.36\"\n",
	}
}

// checkMinor checks that a finder finds a control plane that says want.
func checkMinor(t *testing.T, f Finder, want string) {
	t.Helper()
	path, err := f.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != want+"\n" {
		t.Errorf("the binary says %q, %v, want %q", out, err, want)
	}
}

// Each minor version of Kubernetes is compiled once, with its own requirements. A test compiles the default only.
func TestMinorVersions(t *testing.T) {
	t.Parallel()
	root, cache := clone(t), t.TempDir()
	writeTree(t, root, minorFiles())
	f := Finder{Dir: root, Env: environ(), Cache: cache}
	older, byVariable := f, f
	older.Kubernetes, byVariable.Env = "1.36", environ(KubernetesVariable+"=1.36")
	inTest := byVariable
	inTest.BuildsDefaultOnly = true
	var notBuilt *NotBuiltError
	if _, err := inTest.Find(t.Context()); !errors.As(err, &notBuilt) || !strings.Contains(err.Error(), "up --kubernetes 1.36") {
		t.Errorf("a test that would have to compile: %v", err)
	}
	checkMinor(t, older, "1.36")
	checkMinor(t, byVariable, "1.36")
	checkMinor(t, inTest, "1.36")
	inTest.Env = environ()
	checkMinor(t, inTest, "the default")
	f.Kubernetes = DefaultMinor()
	checkMinor(t, f, "the default")
}

// The source of a published version lies in the module cache, where nothing can be written.
func TestMinorVersionOfAPublishedVersion(t *testing.T) {
	t.Parallel()
	const version = "v1.2.3"
	root, proxy := clone(t), t.TempDir()
	writeTree(t, root, minorFiles())
	publish(t, proxy, filepath.Join(root, "controlplane"), module.Version{Path: nestedPath, Version: version})
	env := environ("GOPROXY=file://"+proxy, "GONOSUMDB=*", "GONOSUMCHECK=1", "GOMODCACHE="+t.TempDir(), "GONOPROXY=none", "GOSUMDB=off")
	t.Cleanup(func() {
		clean := exec.Command("go", "clean", "-modcache")
		clean.Env = env
		_ = clean.Run()
	})
	f := Finder{Dir: t.TempDir(), Env: env, Cache: t.TempDir(), version: version}
	checkMinor(t, f, "the default")
	f.Kubernetes = "1.36"
	checkMinor(t, f, "1.36")
}

func TestMinorVersionsThatAreWrong(t *testing.T) {
	t.Parallel()
	for minor, want := range map[string]string{
		"1.30": "this yare has 1.35, 1.36 and 1.37", "1.36.3": "give a minor version", "v1.36": "give a minor version", "newest": "1.37",
	} {
		if _, err := (Finder{Env: environ(), Kubernetes: minor}).Find(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", minor, err)
		}
		if _, err := (Finder{Env: environ(KubernetesVariable + "=" + minor)}).Find(t.Context()); err == nil {
			t.Errorf("%s by the variable is accepted", minor)
		}
	}
	f := Finder{Env: environ("YARE_CONTROLPLANE=" + fakeBinary(t)), Kubernetes: "1.36"}
	if _, err := f.Find(t.Context()); err == nil || !strings.Contains(err.Error(), "unset one of both") {
		t.Errorf("with a prebuilt control plane: %v", err)
	}
	for minor, isRight := range map[string]bool{"1.33": false, "1.34": true, "1.37": true, "1.38": false, "1.34.1": false, "": false, "1.034": false} {
		if err := CheckEmulated(minor); (err == nil) != isRight {
			t.Errorf("emulating %q: %v", minor, err)
		}
	}
	for name, o := range map[string]Options{
		"a real node":          {RealNode: true, Finder: Finder{Kubernetes: "1.36"}},
		"emulation of another": {Emulate: "1.34", Finder: Finder{Kubernetes: "1.36"}},
		"too old to emulate":   {Emulate: "1.20"},
	} {
		if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "Kubernetes 1.37") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The module of the control plane has the requirements of each minor version but the default.
func TestRequirementsOfMinorVersions(t *testing.T) {
	t.Parallel()
	for _, minor := range Minors() {
		file := filepath.Join("..", "..", "controlplane", source{minor: minor}.goMod())
		if minor == DefaultMinor() {
			file = filepath.Join("..", "..", "controlplane", "go.mod")
		}
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "k8s.io/kubernetes v"+minor+".") {
			t.Errorf("%s does not require Kubernetes %s: %v", file, minor, err)
		}
	}
}
