package dev

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/plane/process"
)

// printLimit is how long a subcommand of an operator that prints something may take.
const printLimit = 20 * time.Second

// operatorError is the problem that an operator reports in place of its output, such as a mistake in a
// tag.
type operatorError struct{ output string }

func (e *operatorError) Error() string { return e.output }

// runSubcommand runs a subcommand of an operator, and returns its standard output and its standard error as problems.
// The error is an *operatorError if the operator reports a problem as operator.Main does.
func runSubcommand(ctx context.Context, binary string, args ...string) (out []byte, problems string, err error) {
	limited, cancel := context.WithTimeout(ctx, printLimit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = process.Run(limited, cmd)
	if exit, failed := errors.AsType[*exec.ExitError](err); failed && exit.ExitCode() == 1 {
		if problem, ok := strings.CutPrefix(stderr.String(), filepath.Base(binary)+": "); ok {
			err = &operatorError{strings.TrimSpace(problem)}
		}
	}
	return stdout.Bytes(), stderr.String(), err
}
