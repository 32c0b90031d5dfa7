package operator

import (
	"runtime"
	"runtime/debug"
)

// modulePath is the path of the module that this package belongs to.
const modulePath = "github.com/yare-go/yare"

// versions returns the versions of the program, of yare and of Go, as the build information has
// them.
func versions() string {
	return programVersion() + ", yare " + yareVersion() + ", " + runtime.Version() + " " + runtime.GOOS + "/" +
		runtime.GOARCH
}

// yareVersion returns the version of yare, as the build information has it.
func yareVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range append(info.Deps, &info.Main) {
			if module.Path == modulePath && module.Version != "" && module.Replace == nil {
				return module.Version
			}
		}
	}
	return "(devel)"
}

// programVersion returns the version of the program, as the build information has it.
func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
