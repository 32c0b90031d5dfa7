package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/internal/plane/process"
)

// target is the Go main package that is developed.
type target struct {
	// shown is the folder as the user wrote it. dir is its absolute path.
	shown, dir string
	goCmd      string
}

// programName returns the name of the file that the program is built as. A program names its objects by it, such as its
// Lease and its field manager, so each build has the same name, which is the name of the folder where that is possible.
func (t target) programName() string {
	if name := filepath.Base(t.dir); len(validation.IsDNS1035Label(name)) == 0 {
		return name
	}
	return "operator"
}

// findTarget returns the target in a folder, or an error if the folder has no Go main package. shown is the folder as
// the user wrote it.
func findTarget(ctx context.Context, shown string) (target, error) {
	dir, err := filepath.Abs(shown)
	if err != nil {
		return target{}, fmt.Errorf("find %s: %w", shown, err)
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return target{}, fmt.Errorf("%s does not exist: name the folder of an operator's main package", shown)
	case err != nil:
		return target{}, fmt.Errorf("look at %s: %w", shown, err)
	case !info.IsDir():
		return target{}, fmt.Errorf("%s is not a folder: name the folder of an operator's main package, not a file of it",
			shown)
	}
	t := target{shown: shown, dir: dir}
	if t.goCmd, err = exec.LookPath("go"); err != nil {
		return t, errors.New("the go command was not found in PATH; it builds the operator: install Go (https://go.dev/dl)")
	}
	out, problems, err := t.run(ctx, "list", "-e", "-json=Name,Error", ".")
	if err != nil {
		if context.Cause(ctx) != nil {
			return t, context.Cause(ctx)
		}
		if strings.Contains(problems, "go.mod file not found") {
			return t, fmt.Errorf("%s is in no Go module: make one there with `go mod init NAME`", shown)
		}
		return t, fmt.Errorf("%s cannot be read by the go command: %s", shown, strings.TrimSpace(problems))
	}
	var pkg struct {
		Name  string
		Error *struct{ Err string }
	}
	if err := json.Unmarshal([]byte(out), &pkg); err != nil {
		return t, fmt.Errorf("read the output of go list about %s: %w", shown, err)
	}
	switch {
	case pkg.Name == "main":
		return t, nil
	case pkg.Name != "":
		return t, fmt.Errorf("%s holds the Go package %s, which is no program: name the folder of an operator's main package",
			shown, pkg.Name)
	case pkg.Error == nil:
		return t, nil
	case strings.Contains(pkg.Error.Err, "no Go files"), strings.Contains(pkg.Error.Err, "no non-test Go files"),
		strings.Contains(pkg.Error.Err, "build constraints exclude all"):
		return t, fmt.Errorf("%s holds no Go main package (%s): name the folder of an operator's main package",
			shown, pkg.Error.Err)
	case hasGoFile(dir):
		return t, nil // a file does not parse: the build reports the place
	}
	return t, fmt.Errorf("%s holds no Go main package: %s", shown, pkg.Error.Err)
}

func hasGoFile(dir string) bool {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return err == nil && len(names) > 0
}

// run runs the go command in the program's folder, and returns its standard output and standard
// error.
func (t target) run(ctx context.Context, args ...string) (out, problems string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(t.goCmd, args...)
	cmd.Dir = t.dir
	cmd.Env = t.env()
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = process.Run(ctx, cmd)
	return stdout.String(), stderr.String(), err
}

// env returns the user's environment with their flags, workspace and proxy. Only the platform is
// replaced by the platform of this machine, because the operator runs here.
func (t target) env() []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name != "GOOS" && name != "GOARCH" && name != "PWD" {
			env = append(env, variable)
		}
	}
	return append(env, "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
}

// compileError is the error of a program that does not compile.
type compileError struct{ output string }

func (e *compileError) Error() string { return "it does not compile:\n" + e.output }

// build compiles the program to the file output.
func (t target) build(ctx context.Context, output string) error {
	_, problems, err := t.run(ctx, "build", "-buildvcs=false", "-o", output, ".")
	if err == nil {
		return nil
	}
	if context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	if strings.TrimSpace(problems) == "" {
		return fmt.Errorf("go build: %w", err)
	}
	if strings.Contains(problems, syscall.ENOSPC.Error()) {
		return fmt.Errorf("no space is left on the disk to build %s: make room, or set GOCACHE and TMPDIR to folders on another disk; go build reports:%s", t.shown, indented(problems))
	}
	return &compileError{output: t.withShownNames(problems)}
}

// withShownNames replaces the file names in a compiler's output. They are relative to the program's folder. The new
// names begin as the user wrote that folder.
func (t target) withShownNames(output string) string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(output, "\n"), "\n") {
		name, rest, ok := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, "#"):
			continue // "# import/path": the file names show the package
		case ok && strings.HasSuffix(name, ".go") && strings.HasPrefix(name, "."):
			line = filepath.Join(t.shown, name) + ":" + rest
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// sourcePackage is the output of `go list` for one package of the program.
type sourcePackage struct {
	Name       string
	Dir        string
	GoFiles    []string
	EmbedFiles []string
	Module     *struct {
		Main  bool
		GoMod string
	}
}

// packages returns the packages of the program that belong to the user's own module, or modules if
// there is a workspace.
func (t target) packages(ctx context.Context) ([]sourcePackage, error) {
	out, problems, err := t.run(ctx, "list", "-e", "-deps", "-json=Name,Dir,GoFiles,EmbedFiles,Module", ".")
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w: %s", t.shown, err, strings.TrimSpace(problems))
	}
	var own []sourcePackage
	decoder := json.NewDecoder(strings.NewReader(out))
	for {
		var pkg sourcePackage
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return own, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the output of go list about %s: %w", t.shown, err)
		}
		if pkg.Module != nil && pkg.Module.Main && pkg.Dir != "" {
			own = append(own, pkg)
		}
	}
}

// shownName returns the name of a file as the user would write it.
func (t target) shownName(file string) string {
	if relative, err := filepath.Rel(t.dir, file); err == nil {
		return filepath.Join(t.shown, relative)
	}
	return file
}

// sample returns the path of the file of objects to try the operator with.
func (t target) sample() string { return filepath.Join(t.dir, "sample.yaml") }

// watchedFiles returns the folder and the file that count in any case: see [files]. The go command adds others.
func (t target) watchedFiles() (folders, paths map[string]bool) {
	return map[string]bool{t.dir: true}, map[string]bool{t.sample(): true}
}
