package dev

import (
	"context"
	"os"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
)

// Options are the settings of [Run].
type Options struct {
	// Dir is the folder of the operator, and Args are its arguments.
	Dir  string
	Args []string
	// Kubeconfig is the path of the file with the access to the cluster. Default: a file in a temporary folder.
	Kubeconfig string
	// Nodes is the number of simulated nodes. 0 is the default of the control plane.
	Nodes int
	// Verbose is true to show the log of the control plane too, and the log of the operator in full.
	Verbose bool
	// UntilReady is true to end when the samples are ready. Timeout is how long that may take.
	UntilReady bool
	Timeout    time.Duration
	// Yare is the command that calls yare from another terminal.
	Yare    string
	Console *console.Console
}

// Run runs the loop until ctx ends, and then returns nil, or until an error occurs that no saved
// file can repair. It leaves no process and no file.
func Run(ctx context.Context, o Options) error {
	t, err := findTarget(ctx, o.Dir)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	work, err := newWorkdir(os.TempDir())
	if err != nil {
		return err
	}
	defer work.remove()

	s := newSession(o, t, work.path)
	defer s.close()
	if err := s.begin(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	return unlessEnded(ctx, s.loop(ctx))
}

// unlessEnded returns err, or nil if ctx has ended, because err is a consequence of that end.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
