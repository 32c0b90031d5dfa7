package plane

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/module"
)

// ModulePath is the path of the Go module yare.
const ModulePath = "github.com/yare-go/yare"

// Location is where the yare module of a program is: one of the two fields is set.
type Location struct {
	// Version is a published version.
	Version string
	// Dir is a clone on this machine.
	Dir string
}

// OwnLocation returns where the yare module of this program is.
func OwnLocation() (Location, error) {
	l, ok := locationOf(OwnVersion(), cloneOfThisYare(ControlPlane()))
	if !ok {
		return Location{}, fmt.Errorf(
			"this yare is a development version, and the clone that it was built from is not there: "+
				"run it from a clone of the repository (go run ./cmd/yare), or install a released version (go install %s/cmd/yare@latest)", ModulePath)
	}
	return l, nil
}

// locationOf returns the location of the yare module for a program of this version, built from this clone. It
// reports whether the location is known.
func locationOf(version, clone string) (l Location, ok bool) {
	isDirty := strings.HasSuffix(version, "+dirty")
	switch isReleased := version != "" && !isDirty && !module.IsPseudoVersion(version); {
	// A development version was built from a clone on this machine, which may still be there.
	// (-trimpath leaves no absolute path behind.)
	case !isReleased && clone != "":
		return Location{Dir: clone}, true
	case version == "" || isDirty:
		return Location{}, false
	default:
		return Location{Version: version}, true
	}
}

// cloneOfThisYare returns the clone that this program was built from, or "" if it is not there or
// does not hold m.
func cloneOfThisYare(m Module) string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return ""
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if !m.isBeside(root) {
		return ""
	}
	return root
}

// OwnVersion returns the version of the yare module in this program, or "" if it was built from a
// folder.
func OwnVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	modules := append([]*debug.Module{&info.Main}, info.Deps...)
	for _, m := range modules {
		if m.Path != ModulePath {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version == "(devel)" {
			return ""
		}
		return m.Version
	}
	return ""
}
