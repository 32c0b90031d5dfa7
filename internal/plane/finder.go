package plane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/yare-go/yare/internal/plane/console"
)

// Finder finds the binary of a module's program, and builds the binary if there is none yet.
type Finder struct {
	// Module is the module of the program. The default is the control plane.
	Module Module
	// Dir is the folder whose module determines the version of the program. The default is the
	// working directory.
	Dir string
	// Env replaces the environment of this process.
	Env []string
	// Cache is the folder binaries are kept in. The default is a folder of the program's name
	// in yare's folder in the user's cache folder.
	Cache string
	// Console shows the progress of a build. It may be nil.
	Console *console.Console
	// Kubernetes is the minor version of Kubernetes of the control plane: one of [Minors]. The default is that of
	// [KubernetesVariable], else [DefaultMinor].
	Kubernetes string
	// BuildsDefaultOnly makes it an error if a control plane of another minor version has to be built.
	BuildsDefaultOnly bool

	// version, if it is not empty, stands for the version of this program, for tests. ignoresClone is true if the clone
	// that this program was built from does not count, for tests.
	version      string
	ignoresClone bool
}

// Find returns the path of the binary. Find builds the binary if it is not in the cache. Of several
// processes that call Find at once, one builds and the others wait.
func (f Finder) Find(ctx context.Context) (string, error) {
	sources, err := f.sourceFinder()
	if err != nil {
		return "", err
	}
	minor, err := f.minor(sources)
	if err != nil {
		return "", err
	}
	src, err := sources.find(ctx)
	if err != nil || src.prebuilt != "" {
		return src.prebuilt, err
	}
	src.minor = minor
	if f.Cache == "" {
		if f.Cache, err = cacheFolder(sources.module.Folder); err != nil {
			return "", err
		}
	}
	binaries := cache{module: sources.module, dir: f.Cache, console: f.Console}
	for {
		b, err := newBuilder(sources.module, sources.env, src, f.Console)
		if err != nil {
			return "", err
		}
		b.mayNotBuild = f.BuildsDefaultOnly && b.src.minor != ""
		path, err := b.buildInto(ctx, binaries)
		if !errors.Is(err, errChanged) {
			return path, err
		}
		f.Console.Printf("the source of %s was changed meanwhile; compiling again what changed", sources.module.Title)
	}
}

// minor returns the minor version of Kubernetes of the program. It is empty for the default.
func (f Finder) minor(s sourceFinder) (string, error) {
	if s.module != ControlPlane() {
		return "", nil
	}
	minor := cmp.Or(f.Kubernetes, s.env.value(KubernetesVariable), DefaultMinor())
	if err := CheckMinor(minor); err != nil {
		return "", err
	}
	if f.Kubernetes != "" && s.env.value(s.module.Variable()) != "" {
		return "", fmt.Errorf("a control plane of Kubernetes %s is asked for, and %s names another one: unset one of both",
			minor, s.module.Variable())
	}
	if minor == DefaultMinor() {
		return "", nil
	}
	return minor, nil
}

// sourceFinder returns the sourceFinder of the program, with the defaults of f.
func (f Finder) sourceFinder() (sourceFinder, error) {
	s := sourceFinder{module: f.Module, dir: f.Dir, env: f.environ()}
	if s.module == (Module{}) {
		s.module = ControlPlane()
	}
	if s.dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return s, fmt.Errorf("find the working directory: %w", err)
		}
		s.dir = dir
	}
	version, clone := f.version, ""
	if version == "" {
		version = OwnVersion()
	}
	if !f.ignoresClone {
		clone = cloneOfThisYare(s.module)
	}
	if own, ok := locationOf(version, clone); ok {
		s.own = &own
	}
	return s, nil
}

// environ returns the environment in which the program is looked for and built.
func (f Finder) environ() environment {
	if f.Env != nil {
		return f.Env
	}
	return os.Environ()
}

// cacheFolder returns the path of one of yare's folders in the user's cache folder. It need not
// exist.
func cacheFolder(name string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find your cache folder: %w: set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(dir, "yare", name), nil
}
