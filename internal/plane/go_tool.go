package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"

	"github.com/yare-go/yare/internal/plane/process"
)

// goTool is the user's go command.
type goTool struct {
	path string
	env  environment
}

// newGoTool returns the go command of PATH, which will build the module m.
func newGoTool(env environment, m Module) (goTool, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return goTool{}, fmt.Errorf("the go command was not found in PATH; it builds %s on first use: "+
			"install Go (https://go.dev/dl), or set %s to a prebuilt binary", m.Title, m.Variable())
	}
	return goTool{path: path, env: env}, nil
}

// output runs a go command and returns its standard output. The error includes its standard
// error.
func (t goTool) output(ctx context.Context, dir string, env environment, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	err := t.run(ctx, dir, env, &stdout, &stderr, args...)
	if err != nil && context.Cause(ctx) == nil {
		if text := strings.TrimSpace(stderr.String()); text != "" {
			err = errors.New(text)
		}
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return stdout.String(), err
}

// run runs a go command. A nil env means the environment of the user.
func (t goTool) run(ctx context.Context, dir string, env environment, stdout, stderr io.Writer, args ...string) error {
	cmd := exec.Command(t.path, args...)
	cmd.Dir = dir
	cmd.Env = t.env
	if env != nil {
		cmd.Env = env
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return process.Run(ctx, cmd)
}

// buildEnv returns the environment that a program is built in. It leaves out what users set for
// their own module, because the program is another module, and runs on this machine.
// It keeps where modules come from (GOPROXY, GOPRIVATE, …).
func (t goTool) buildEnv() environment {
	dropped := map[string]bool{
		"GOFLAGS": true, "GOWORK": true, "GOOS": true, "GOARCH": true, "CGO_ENABLED": true, "GOBIN": true,
		"GO111MODULE": true, "GOEXPERIMENT": true, "GODEBUG": true, "PWD": true,
	}
	// With more memory the compilers collect less garbage, which saves a twentieth of the time.
	// A GOGC of the user comes later and wins.
	env := environment{"GOGC=200"}
	for _, variable := range t.env {
		name, _, _ := strings.Cut(variable, "=")
		if !dropped[name] {
			env = append(env, variable)
		}
	}
	// The variables are set, not left out: an unset one would be looked up in `go env -w`.
	return append(env, "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0", "GO111MODULE=on",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
}

// environment is a list of environment variables, each as NAME=VALUE. The last value of a name counts.
type environment []string

// value returns the value of a variable. It is empty if the variable is not set.
func (e environment) value(name string) string {
	value := ""
	for _, variable := range e {
		if n, v, _ := strings.Cut(variable, "="); n == name {
			value = v
		}
	}
	return value
}
