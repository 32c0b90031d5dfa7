package plane

import "strings"

// A Program is a Go module of its own beside the module yare. Its root package is a program, which a
// [Finder] builds once and keeps. The modules that the program is made of are requirements of
// nobody who imports yare.
type Program struct {
	// Folder is the folder of the module in a clone of yare. The binary, and its folder in the cache,
	// have the same name.
	Folder string
	// Title is the name of the program in messages.
	Title string
	// FirstBuild describes, in messages, what the first build takes.
	FirstBuild string
}

// ControlPlane returns the program that is the embedded control plane.
func ControlPlane() Program {
	return Program{
		Folder:     "controlplane",
		Title:      "the control plane",
		FirstBuild: "(Kubernetes itself): this takes minutes, and happens once",
	}
}

// ImageBuilder returns the program that makes container images.
func ImageBuilder() Program {
	return Program{
		Folder:     "image",
		Title:      "the image builder",
		FirstBuild: "(the client of registries): this happens once",
	}
}

// Variable returns the name of the environment variable that names a binary of the program, to be
// used unchanged.
func (p Program) Variable() string { return "YARE_" + strings.ToUpper(p.Folder) }

// modulePath returns the path of the module of the program.
func (p Program) modulePath() string { return ModulePath + "/" + p.Folder }
