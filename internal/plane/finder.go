package plane

import (
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

	// version and ignoresClone replace what this program knows of itself, for tests.
	version      string
	ignoresClone bool
}

// Find returns the path of the binary, which it builds if it is not in the cache. When several
// processes ask at once, one builds and the others wait.
func (f Finder) Find(ctx context.Context) (string, error) {
	l, err := f.sourceFinder()
	if err != nil {
		return "", err
	}
	src, err := l.find(ctx)
	if err != nil || src.prebuilt != "" {
		return src.prebuilt, err
	}
	if f.Cache == "" {
		if f.Cache, err = cacheFolder(l.module.Folder); err != nil {
			return "", err
		}
	}
	kept := cache{module: l.module, dir: f.Cache, console: f.Console}
	for {
		b, err := newBuilder(l.module, l.env, src, f.Console)
		if err != nil {
			return "", err
		}
		path, err := b.buildInto(ctx, kept)
		if !errors.Is(err, errChanged) {
			return path, err
		}
		f.Console.Printf("the source of %s was changed meanwhile; compiling again what changed", l.module.Title)
	}
}

// sourceFinder returns the sourceFinder of the program, with the defaults of f.
func (f Finder) sourceFinder() (sourceFinder, error) {
	l := sourceFinder{module: f.Module, dir: f.Dir, env: f.environ()}
	if l.module == (Module{}) {
		l.module = ControlPlane()
	}
	if l.dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return l, fmt.Errorf("find the working directory: %w", err)
		}
		l.dir = dir
	}
	version, clone := f.version, ""
	if version == "" {
		version = OwnVersion()
	}
	if !f.ignoresClone {
		clone = cloneOfThisYare(l.module)
	}
	if own, ok := locationOf(version, clone); ok {
		l.own = &own
	}
	return l, nil
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
