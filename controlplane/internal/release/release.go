// Package release sets the version that the Kubernetes code in this program reports.
//
// Kubernetes learns its version from its own build script, which sets variables at
// link time. A plain `go build` sets none of them, so this program sets them itself,
// from the version of k8s.io/kubernetes that the build recorded. So the shown version is that of the code that
// runs. (Package internal/plane of the root module also sets the variables of k8s.io/component-base at link time.)
package release

import (
	"fmt"
	"runtime/debug"
	"strings"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// The variables that Kubernetes' build script sets. They are unexported and have no
// setter: version.SetDynamicVersion refuses any version whose numbers differ from the
// one set at link time.
var (
	//go:linkname serverVersion k8s.io/component-base/version.gitVersion
	serverVersion string
	//go:linkname serverMajor k8s.io/component-base/version.gitMajor
	serverMajor string
	//go:linkname serverMinor k8s.io/component-base/version.gitMinor
	serverMinor string
	//go:linkname serverCommit k8s.io/component-base/version.gitCommit
	serverCommit string
	//go:linkname serverTreeState k8s.io/component-base/version.gitTreeState
	serverTreeState string

	// client-go has a copy of its own, which ends up in User-Agent headers.
	//go:linkname clientVersion k8s.io/client-go/pkg/version.gitVersion
	clientVersion string
	//go:linkname clientCommit k8s.io/client-go/pkg/version.gitCommit
	clientCommit string
)

// unset is how an unset version begins.
const unset = "v0.0.0-master"

// Set makes Kubernetes report the release it was built from. It changes no version that was
// set at link time, and does nothing when the build recorded no version. It must be called
// before any code of Kubernetes runs.
func Set() error {
	if !strings.HasPrefix(serverVersion, unset) {
		return nil
	}
	release := recordedVersion("k8s.io/kubernetes")
	major, minor, ok := majorMinor(release)
	if !ok {
		return nil
	}
	serverVersion, serverMajor, serverMinor = release, major, minor
	clientVersion = release
	// The commit is not recorded anywhere; the placeholder would only confuse.
	serverCommit, clientCommit = "", ""
	serverTreeState = "clean"
	if err := version.SetDynamicVersion(release); err != nil {
		return fmt.Errorf("set the version of Kubernetes to %s: %w", release, err)
	}
	return nil
}

// recordedVersion returns the version of a module that is linked into this program, or "".
func recordedVersion(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path != module {
			continue
		}
		if dep.Replace != nil {
			return dep.Replace.Version
		}
		return dep.Version
	}
	return ""
}

// majorMinor returns the first two numbers of a version such as v1.36.3.
func majorMinor(release string) (major, minor string, ok bool) {
	numbers, found := strings.CutPrefix(release, "v")
	if !found {
		return "", "", false
	}
	parts := strings.SplitN(numbers, ".", 3)
	if len(parts) != 3 {
		return "", "", false
	}
	return parts[0], parts[1], true
}
