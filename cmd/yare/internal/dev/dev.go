package dev

import (
	"context"
	"os"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
)

// Options are the settings of [Run].
type Options struct {
	Dir        string        // the operator's folder
	Args       []string      // the operator's arguments
	Kubeconfig string        // where to put the access to the cluster; "" for a place of its own
	Nodes      int           // simulated nodes; 0 for the default
	Verbose    bool          // show the control plane's log too, and the operator's in full
	UntilReady bool          // end when the samples are ready
	Timeout    time.Duration // how long UntilReady may take
	Yare       string        // how to call yare from another terminal
	Console    *console.Console
}

// Run runs the loop until ctx ends, and then returns nil, or until an error occurs that no saved
// file can repair. It leaves no process and no file.
func Run(ctx context.Context, o Options) error {
	p, err := inspect(ctx, o.Dir)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	work, err := newWorkdir(os.TempDir())
	if err != nil {
		return err
	}
	defer work.remove()

	s := newSession(o, p, work.path)
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
