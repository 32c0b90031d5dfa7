package plane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/durations"
)

// builder makes the binary of one source.
type builder struct {
	module  Module
	tool    goTool
	src     source
	console *console.Console
	// mayNotBuild makes it an error if the binary is not in the cache.
	mayNotBuild bool
	// kubernetes is the version of Kubernetes that the source requires. It is "" if it is not
	// known yet, or if the source requires none.
	kubernetes string
}

// newBuilder returns the builder of a source.
func newBuilder(m Module, env environment, src source, out *console.Console) (builder, error) {
	tool, err := newGoTool(env, m)
	if err != nil {
		return builder{}, err
	}
	b := builder{module: m, tool: tool, src: src, console: out}
	if src.dir != "" {
		b.kubernetes, err = b.kubernetesVersion(filepath.Join(src.dir, src.goMod()))
	}
	return b, err
}

// errChanged means that the source changed during its build.
var errChanged = errors.New("the source was changed while it was compiled")

// buildInto returns the path of the binary in a cache, and builds the binary if it is not there.
func (b builder) buildInto(ctx context.Context, binaries cache) (string, error) {
	key, err := b.key(ctx)
	if err != nil {
		return "", fmt.Errorf("look for %s that is already built: %w", b.module.Title, err)
	}
	return binaries.getOrBuild(ctx, key, func(ctx context.Context, dir string) error {
		if b.mayNotBuild {
			return &NotBuiltError{b.module, b.src.minor}
		}
		err := b.build(ctx, dir)
		// The compiled source may be neither the source before nor the source after.
		if after, keyErr := b.key(ctx); ctx.Err() == nil && keyErr == nil && after != key {
			return errChanged
		}
		return err
	})
}

// build builds the binary in dir.
func (b builder) build(ctx context.Context, dir string) error {
	started := time.Now()
	task := b.console.Task()
	defer task.Done()
	title := b.module.Title
	if b.src.minor != "" {
		title += " of Kubernetes " + b.src.minor
	}
	b.console.Printf("compiling %s %s", title, b.module.FirstBuild)

	var args []string
	env := b.tool.buildEnv()
	source, workdir := b.src.dir, b.src.dir
	if b.src.version != "" {
		task.Set("downloading the source of %s, %s", b.module.Title, b.src.version)
		downloaded, err := b.download(ctx)
		if err != nil {
			return err
		}
		goMod := downloaded.GoMod
		if b.src.minor != "" {
			goMod = filepath.Join(downloaded.Dir, b.src.goMod())
		}
		if b.kubernetes, err = b.kubernetesVersion(goMod); err != nil {
			return err
		}
		source, workdir = downloaded.Dir, dir
		if b.src.minor == "" {
			env = append(env, "GOBIN="+dir)
			args = append(append([]string{"install", "-v"}, buildFlags(b.kubernetes)...),
				b.module.modulePath()+"@"+downloaded.Version)
		} else { // go install PACKAGE@VERSION takes the go.mod of the version only
			source, workdir = filepath.Join(dir, "source"), filepath.Join(dir, "source")
			if err := os.CopyFS(source, os.DirFS(downloaded.Dir)); err != nil {
				return fmt.Errorf("copy the source of %s: %w", b.module.Title, err)
			}
		}
	}
	if args == nil {
		args = append(append([]string{"build", "-v", "-o", filepath.Join(dir, b.module.Folder)}, b.minorFlags()...),
			append(buildFlags(b.kubernetes), ".")...)
	}

	last, step := durations.Default(), "compile "+b.module.Title
	p := newBuildProgress(b.module, task, started, last.Last(step))
	defer p.stop()
	// The number of packages is only shown, so an error does not matter. The downloads of a first
	// build happen here.
	if count, err := b.countPackages(ctx, p, source, env); err == nil {
		p.setPackageCount(count)
	}
	if err := b.tool.run(ctx, workdir, env, nil, p, args...); err != nil {
		if context.Cause(ctx) != nil {
			return fmt.Errorf("compile %s: interrupted: %w", b.module.Title, context.Cause(ctx))
		}
		return &BuildError{Module: b.module, Err: err, Output: p.errorText()}
	}
	p.stop()
	task.Done()
	last.Record(step, time.Since(started))
	b.console.Printf("%s is compiled (%s); from now on it is found at once",
		b.module.Title, console.Duration(time.Since(started)))
	return nil
}

// countPackages returns the number of packages of the program whose source is in dir. p shows the downloads of modules.
func (b builder) countPackages(ctx context.Context, p *buildProgress, dir string, env []string) (int, error) {
	var out strings.Builder
	args := append(append([]string{"list"}, b.minorFlags()...), "-deps", "-f", "{{.ImportPath}}", ".")
	err := b.tool.run(ctx, dir, env, &out, p, args...)
	return strings.Count(out.String(), "\n"), err
}

// minorFlags returns the flags of the go command for the requirements of a minor version that is not the default. A tag
// such as kubernetes1.36 chooses the code that differs.
func (b builder) minorFlags() []string {
	if b.src.minor == "" {
		return nil
	}
	return []string{"-modfile=" + b.src.goMod(), "-tags=kubernetes" + b.src.minor}
}

// downloadedModule is the output of `go mod download -json`.
type downloadedModule struct {
	Version, Dir, GoMod, Error string
}

// download downloads the module of the program in the version of the source.
func (b builder) download(ctx context.Context) (downloadedModule, error) {
	version := b.src.version
	if module.IsPseudoVersion(version) {
		// The pseudo-version of the nested module at the same commit may have another
		// base: its tags are its own.
		if revision, err := module.PseudoVersionRev(version); err == nil {
			version = revision
		}
	}
	// The command runs outside of any module, so that no go.mod has an effect.
	out, err := b.tool.output(ctx, os.TempDir(), b.tool.buildEnv(),
		"mod", "download", "-json", b.module.modulePath()+"@"+version)
	var d downloadedModule
	if jsonErr := json.Unmarshal([]byte(out), &d); err == nil && jsonErr != nil {
		err = jsonErr
	}
	if err == nil && d.Error != "" {
		err = errors.New(d.Error)
	}
	if err != nil {
		if context.Cause(ctx) != nil {
			return d, context.Cause(ctx)
		}
		return d, fmt.Errorf("download %s %s@%s: %w: check the network and GOPROXY, "+
			"use a clone of the repository by a replace directive, or set %s to a prebuilt binary",
			b.module.Title, b.module.modulePath(), version, err, b.module.Variable())
	}
	return d, nil
}

// buildFlags returns the flags of go build and go install.
func buildFlags(kubernetes string) []string {
	ldflags := "-s -w"
	if major, minor, ok := majorMinor(kubernetes); ok {
		// Otherwise the real node would report the version v0.0.0-master+$Format:%H$. The control plane sets its version
		// without these flags too (controlplane/internal/release).
		const variable = " -X k8s.io/component-base/version."
		ldflags += variable + "gitVersion=" + kubernetes + variable + "gitMajor=" + major +
			variable + "gitMinor=" + minor + variable + "gitTreeState=clean"
	}
	// -buildvcs=false: a clone whose owner git does not trust could not be built.
	// -dwarf=false: what the linker would strip need not be made, which saves a tenth of
	// the time.
	return []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags=" + ldflags}
}

// majorMinor returns the first two numbers of a version, such as 1 and 37 of v1.37.2.
func majorMinor(version string) (major, minor string, ok bool) {
	rest, ok := strings.CutPrefix(version, "v")
	if !ok {
		return "", "", false
	}
	major, rest, ok = strings.Cut(rest, ".")
	minor, _, ok2 := strings.Cut(rest, ".")
	return major, minor, ok && ok2
}

// kubernetesVersion returns the version of Kubernetes that the go.mod of the program requires, or "".
func (b builder) kubernetesVersion(gomod string) (string, error) {
	data, err := os.ReadFile(gomod)
	if err != nil {
		return "", fmt.Errorf("read the go.mod of %s: %w", b.module.Title, err)
	}
	file, err := modfile.ParseLax(gomod, data, nil)
	if err != nil {
		return "", fmt.Errorf("read the go.mod of %s: %w", b.module.Title, err)
	}
	for _, r := range file.Require {
		if r.Mod.Path == "k8s.io/kubernetes" {
			return r.Mod.Version, nil
		}
	}
	return "", nil
}

// key returns the name of the binary that a build would make. It changes with the source, the Go
// version, the platform and the flags.
func (b builder) key(ctx context.Context) (string, error) {
	goVersion, err := b.goVersion(ctx)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	// Each part ends with a zero byte, so that no two lists of parts look the same.
	write := func(parts ...string) {
		for _, part := range parts {
			_, _ = io.WriteString(hash, part+"\x00")
		}
	}
	write("1", goVersion, runtime.GOOS, runtime.GOARCH)
	if b.src.minor != "" {
		write("minor", b.src.minor)
	}
	if b.src.version != "" {
		write("version", b.src.version)
		write(buildFlags("")...)
	} else {
		write("source")
		write(buildFlags(b.kubernetes)...)
		if err := hashSource(b.src.dir, write); err != nil {
			return "", fmt.Errorf("read the source of %s in %s: %w", b.module.Title, b.src.dir, err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:32], nil
}

// goVersion returns the version of Go that would build the source. The go.mod of the source may ask for
// another version than the installed one.
func (b builder) goVersion(ctx context.Context) (string, error) {
	dir := b.src.dir
	if dir == "" {
		dir = os.TempDir()
	}
	out, err := b.tool.output(ctx, dir, b.tool.buildEnv(), "env", "GOVERSION")
	if err != nil {
		return "", fmt.Errorf("ask the go command for its version: %w", err)
	}
	return strings.TrimSpace(out), nil
}

// BuildError is the error of a program that does not compile.
type BuildError struct {
	Module Module
	Err    error
	// Output is the output of the compiler.
	Output string
}

func (e *BuildError) Error() string {
	text := "compile " + e.Module.Title + ": " + e.Err.Error()
	if e.Output != "" {
		text += "\n" + e.Output
	}
	return text +
		"\nmend what it says (a full disk, a Go too old and a network that is down are the usual causes) and try again, " +
		"or set " + e.Module.Variable() + " to a prebuilt binary"
}

func (e *BuildError) Unwrap() error { return e.Err }
