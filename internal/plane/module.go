package plane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// Module is a Go module of its own beside the module yare. Its root package is a program, which a
// [Finder] builds once and keeps. Nobody who imports yare inherits the requirements of the module.
type Module struct {
	// Folder is the folder of the module in a clone of yare. The binary, and its folder in the cache,
	// have the same name.
	Folder string
	// Title is the name of the program in messages.
	Title string
	// FirstBuild describes, in messages, what the first build takes.
	FirstBuild string
}

// ControlPlane returns the module of the embedded control plane.
func ControlPlane() Module {
	return Module{
		Folder:     "controlplane",
		Title:      "the control plane",
		FirstBuild: "(Kubernetes itself): this takes minutes, and happens once",
	}
}

// ImageBuilder returns the module of the program that makes container images.
func ImageBuilder() Module {
	return Module{
		Folder:     "image",
		Title:      "the image builder",
		FirstBuild: "(the client of registries): this happens once",
	}
}

// RealNode returns the module of the program that runs a real node beside the control plane.
func RealNode() Module {
	return Module{
		Folder:     "realnode",
		Title:      "the real node",
		FirstBuild: "(the kubelet and kube-proxy): this takes minutes, and happens once",
	}
}

// Variable returns the name of the environment variable that names a binary of the program, to be
// used unchanged.
func (m Module) Variable() string { return "YARE_" + strings.ToUpper(m.Folder) }

// modulePath returns the path of the module of the program.
func (m Module) modulePath() string { return ModulePath + "/" + m.Folder }

// checkPrebuilt returns the absolute path of the binary of m that the environment names.
func (m Module) checkPrebuilt(name string) (string, error) {
	variable := m.Variable()
	advice := "name a binary of " + m.Title + ", or unset " + variable + " to have one built"
	path, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("%s=%s: %w", variable, name, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%s=%s: there is no such file: %s", variable, name, advice)
	case err != nil:
		return "", fmt.Errorf("%s=%s: %w: %s", variable, name, err, advice)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return "", fmt.Errorf("%s=%s: this is not an executable file: %s", variable, name, advice)
	}
	return path, nil
}

// isBeside reports whether the module m is in its folder below the root of a yare module.
func (m Module) isBeside(root string) bool {
	data, err := os.ReadFile(filepath.Join(root, m.Folder, "go.mod"))
	return err == nil && modfile.ModulePath(data) == m.modulePath()
}
