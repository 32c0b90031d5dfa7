package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/yare-go/yare/internal/plane/console"
)

// A Finder finds the binary of a program, and builds it where there is none yet.
type Finder struct {
	// Program is the program. The default is the control plane.
	Program Program
	// Dir is the folder whose module determines the version of the program. Default: the working
	// directory.
	Dir string
	// Env replaces the environment of this process.
	Env []string
	// Cache is the folder binaries are kept in. The default is a folder of the program's name
	// in yare's folder in the user's cache folder.
	Cache string
	// Console shows the progress of a build. It may be nil.
	Console *console.Console

	// version and noClone replace what this program knows of itself, for tests.
	version string
	noClone bool
}

// Find returns the path of the binary, which it builds if it is not in the cache. When several
// processes ask at once, one builds and the others wait.
func (f Finder) Find(ctx context.Context) (string, error) {
	if f.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("finding the working directory: %w", err)
		}
		f.Dir = dir
	}
	src, err := f.locate(ctx)
	if err != nil {
		return "", err
	}
	if src.prebuilt != "" {
		return src.prebuilt, nil
	}
	if f.Cache == "" {
		if f.Cache, err = cacheFolder(f.program().Folder); err != nil {
			return "", err
		}
	}
	for {
		path, err := f.get(ctx, src)
		if !errors.Is(err, errChanged) {
			return path, err
		}
		f.Console.Printf("the source of %s was changed meanwhile; compiling again what changed", f.program().Title)
	}
}

// errChanged means that the source changed during its build.
var errChanged = errors.New("the source was changed while it was compiled")

func (f Finder) get(ctx context.Context, src source) (string, error) {
	b, err := f.builder(src)
	if err != nil {
		return "", err
	}
	key, err := b.key(ctx)
	if err != nil {
		return "", fmt.Errorf("looking for %s that is already built: %w", b.program.Title, err)
	}
	return cache{program: b.program, dir: f.Cache, console: f.Console}.get(ctx, key, func(ctx context.Context, dir string) error {
		err := b.build(ctx, dir)
		// The compiled source may be neither the source before nor the source after.
		if after, keyErr := b.key(ctx); ctx.Err() == nil && keyErr == nil && after != key {
			return errChanged
		}
		return err
	})
}

// program returns the program to find.
func (f Finder) program() Program {
	if f.Program == (Program{}) {
		return ControlPlane()
	}
	return f.Program
}

// cacheFolder returns the path of one of yare's folders in the user's cache folder. It need not
// exist.
func cacheFolder(name string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding your cache folder: %w: set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(dir, "yare", name), nil
}

func (f Finder) environ() []string {
	if f.Env != nil {
		return f.Env
	}
	return os.Environ()
}

func (f Finder) getenv(name string) string {
	value := ""
	for _, variable := range f.environ() {
		if n, v, _ := strings.Cut(variable, "="); n == name {
			value = v
		}
	}
	return value
}

func (f Finder) ownVersion() string {
	if f.version != "" {
		return f.version
	}
	return OwnVersion()
}

// errNoSource means that the source vanished while it was read.
var errNoSource = errors.New("the folder holds no source")
