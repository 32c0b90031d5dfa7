// Package up runs a whole control plane as children of this process, from the first of
// them until all are gone and nothing is left.
package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/yare-go/yare/controlplane/internal/control"
	"github.com/yare-go/yare/controlplane/internal/etcdclient"
	"github.com/yare-go/yare/controlplane/internal/layout"
	"github.com/yare-go/yare/controlplane/internal/process"
	"github.com/yare-go/yare/controlplane/internal/supervise"
)

// Main runs the command `up` and returns the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args)
	switch {
	case isHelp(err):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "controlplane:", err)
		return 2
	}
	ctx, end, stop := signalContext()
	defer stop()
	stdout, stderr = outputWriter{stdout, end}, outputWriter{stderr, end}
	output := control.NewWriter(stdout)
	var reports reporter = textReporter{stdout}
	if o.control {
		reports = jsonReporter{output}
	}
	if o.control {
		// The end of the input ends the plane, also while it starts.
		etcdclient.Quiet()
		commands := newCommands(output, end)
		go commands.read(stdin) // a read of standard input cannot be ended from here
		err = run(ctx, o, stderr, reports, commands)
	} else {
		err = run(ctx, o, stderr, reports, nil)
	}
	if err == nil {
		return 0
	}
	failed := control.Event{Event: control.Failed, Error: err.Error()}
	if exit, ok := errors.AsType[*supervise.ExitError](err); ok {
		failed.Component, failed.Log = exit.Component, exit.Log
	}
	reports.report(failed)
	fmt.Fprintln(stderr, "controlplane:", err)
	return 1
}

// run runs a plane until the context ends.
func run(ctx context.Context, o options, stderr io.Writer, reports reporter, commands *commands) (err error) {
	started := time.Now()
	if o.kubeconfig != "" {
		if o.kubeconfig, err = filepath.Abs(o.kubeconfig); err != nil {
			return fmt.Errorf("find the kubeconfig file: %w", err)
		}
		if err := checkKubeconfig(o.kubeconfig); err != nil {
			return err
		}
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	layout.Sweep()
	folder, err := layout.NewFolder(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()

	launcher := process.NewLauncher()
	defer launcher.Close()

	config := layout.Config{Executable: executable, Nodes: o.nodes, APIServerArgs: o.apiServerArgs, Emulated: o.emulated, Etcd: o.etcd}
	if o.verbose {
		config.Log = stderr
	}
	// Another program can take a port between its choice and its use.
	const tries = 3
	for try := 1; ; try++ {
		p, err := layout.New(folder, config, time.Now())
		if err != nil {
			return err
		}
		s := &session{options: o, plane: p, folder: folder, started: started, reports: reports, commands: commands}
		err = s.run(ctx, launcher)
		if exit, ok := errors.AsType[*supervise.ExitError](err); ok && exit.PortTaken && !s.isReady.Load() && try < tries {
			if err := folder.Clear(); err != nil {
				return err
			}
			continue
		}
		if ctx.Err() != nil { // asked to end: what went wrong on the way does not matter
			if !s.isReady.Load() {
				text := fmt.Sprintf("asked to end before it was ready: %v", context.Cause(ctx))
				reports.report(control.Event{Event: control.Failed, Error: text})
			}
			return nil
		}
		return err
	}
}
