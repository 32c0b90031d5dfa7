// Command yare is the command line of yare: a real Kubernetes control plane on this
// machine, and the loop in which an operator is written against it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// The first signal asks for a clean end; a second Ctrl-C ends yare at once. A second SIGTERM
	// does not: at a parent's death Linux may send it once for each thread of the parent.
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })

	out := console.New(os.Stderr, "yare")
	if err := newRoot(out).ExecuteContext(ctx); err != nil {
		out.Printf("%v", err)
		if exit, ok := errors.AsType[exitError](err); ok {
			return exit.ExitStatus()
		}
		return 1
	}
	return 0
}

// exitError is an error with an exit status of its own.
type exitError interface {
	error
	ExitStatus() int
}

func newRoot(out *console.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   "yare",
		Short: "A Kubernetes control plane on this machine, to write operators against",
		Long: `yare runs a real Kubernetes control plane on this machine: etcd, kube-apiserver,
kube-controller-manager, kube-scheduler and simulated nodes, as ordinary processes.
Nothing is installed and nothing runs in containers; what it starts it also removes.

The control plane is compiled from Go modules on first use, which takes minutes, and
kept in your cache folder.`,
		Example: `  yare new ./my-operator     create an operator
  yare dev ./my-operator     write an operator: build, run, and again at every save
  yare up                    only the control plane
  yare kubectl get pods -A   look into it from another terminal
  yare explore .             run an operator under faults, and compare what it leaves
  yare image -o op.tar .     make a container image of an operator`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("there is no command %q: see `yare --help`", args[0])
			}
			return nil
		},
		SilenceUsage:  true, // a run-time error is not a question about usage
		SilenceErrors: true, // run prints them, once
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
	})
	root.AddCommand(newNew(out), newUp(out), newDev(out), newKubectl(out), newImage(out),
		explore.Command(), newLoad(), newTags(), newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of yare, of the Go it was built with, and of its control planes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version := plane.OwnVersion()
			if version == "" {
				version = "(built from a folder)"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "yare %s, %s %s/%s\ncontrol planes of Kubernetes %s (default %s)\n",
				version, runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(plane.Minors(), ", "), plane.DefaultMinor())
			return err
		},
	}
}
