package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/durations"
)

// builder builds the operator. One goroutine uses it.
type builder struct {
	target target
	files  *files
	// args are the arguments of the operator, and folder is the folder of the binaries.
	args    []string
	folder  string
	console *console.Console

	buildCount int
	// durations has how long the last builds took.
	durations durations.File
	// binary is the newest binary that was built. It is empty before the first build.
	binary string
	// crds, permissions and policies are what the newest binary prints.
	crds        crds
	permissions permissions
	policies    policies
}

// minShownDuration is how long a build must have taken before the next one begins with the time of the last one.
const minShownDuration = 3 * time.Second

// build builds the operator, and reads the CRDs and permissions that it prints.
func (b *builder) build(ctx context.Context) (err error) {
	b.files.refresh(ctx)
	started := time.Now()
	last, step := b.durations, "build "+b.target.dir
	if b.binary == "" {
		stop := last.Show(b.console, step, "building "+b.target.shown)
		defer stop()
	} else { // the operator itself writes to the terminal, so there is no progress but a line at the beginning
		step = "build again " + b.target.dir
		if took := last.Last(step); took >= minShownDuration {
			b.console.Printf("building %s took %s the last time", b.target.shown, console.Duration(took))
		}
	}
	binary := filepath.Join(b.folder, fmt.Sprintf("build-%d", b.buildCount), b.target.programName())
	b.buildCount++
	defer func() {
		if err != nil {
			removeBuild(binary)
		}
	}()
	if err := b.target.build(ctx, binary); err != nil {
		return err
	}
	if b.binary != "" && haveSameContent(b.binary, binary) {
		return errUnchanged
	}
	definitions, err := askCRDs(ctx, binary, b.target.shown)
	if refused, ok := errors.AsType[*operatorError](err); ok {
		if packages, err := b.target.packages(ctx); err == nil {
			refused.output = withPositions(refused.output, packages, b.target.shownName)
		}
	}
	if err != nil {
		return err
	}
	granted, err := askPermissions(ctx, binary, b.target.shown, b.args)
	if err != nil {
		return err
	}
	var added policies
	if !granted.isUnknown { // operator.Main brings permissions and manifests
		if added, err = askPolicies(ctx, binary, b.target.shown, b.args); err != nil {
			if ctx.Err() != nil {
				return err
			}
			b.console.Printf("the admission policies of the program are not applied: %v", err)
			added = b.policies
		}
	}
	last.Record(step, time.Since(started))
	b.binary, b.crds, b.permissions, b.policies = binary, definitions, granted, added
	b.console.Printf("built %s (%s)", b.target.shown, console.Duration(time.Since(started)))
	return nil
}

// errUnchanged means that a build gave the same program as before.
var errUnchanged = errors.New("the same program")

// removeBuild removes a binary with its folder.
func removeBuild(binary string) {
	_ = os.RemoveAll(filepath.Dir(binary)) // an error does not matter: everything is removed at the end
}

// haveSameContent reports whether two files have the same content.
func haveSameContent(a, b string) bool {
	x, err1 := os.ReadFile(a)
	y, err2 := os.ReadFile(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}
