package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/cmd/yare/internal/dev"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/process"
)

func newDev(out *console.Console) *cobra.Command {
	var o dev.Options
	cmd := &cobra.Command{
		Use:   "dev DIR [-- ARGS]",
		Short: "Build and run the operator in DIR on a control plane, again at every save",
		Long: `dev builds the operator in DIR, a Go main package, and runs it on a control plane of its
own. It applies the CustomResourceDefinitions that the operator prints (its subcommand
crd) and the objects in DIR/sample.yaml, where there is one.

When a Go file of the operator's module is saved, the operator is built and started
again; a version that does not compile, or with a mistake in a crd tag, is reported, and
the one before goes on. When sample.yaml is saved, it is applied again. An operator that
ends with an error is started again, later each time. Ctrl-C ends all of it and leaves
nothing behind.

With --until-ready it ends with status 0 once the operator runs and everything in the
samples is ready: Deployments and their like are rolled out; a condition Ready or
Available is True; status.ready is true; anything else is there. A custom resource whose
definition has status.ready or status.conditions is waited for until it has a status.

ARGS are given to the operator, after -v, with which it logs every reconcile. dev shows a
short line for each that changed something, with its cause and what it wrote, and counts the
others.`,
		Example: `  yare dev ./examples/book
  yare dev . --until-ready --timeout 1m
  yare dev . -- --watch-namespace default`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			process.EndWithGo()
			o.Dir, o.Args, o.Console, o.Yare = args[0], append([]string{"-v"}, args[1:]...), out, shownCommand()
			return dev.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "",
		"write the access to the cluster to this `FILE` (default: one in a temporary folder)")
	cmd.Flags().IntVar(&o.Nodes, "nodes", 0, "number of simulated nodes (default: the control plane's)")
	addMinorFlags(cmd, &o.Kubernetes, &o.Emulate)
	cmd.Flags().BoolVarP(&o.Verbose, "verbose", "v", false,
		"show the control plane's own log, and each reconcile of the operator in full")
	cmd.Flags().BoolVar(&o.UntilReady, "until-ready", false, "end with status 0 when everything in the samples is ready")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute,
		"with --until-ready: how long that may take once operator and control plane are built")
	return cmd
}

// oneFolder checks that there is one folder. Its errors name the purpose of the argument, unlike the
// errors of cobra's own check.
func oneFolder(cmd *cobra.Command, args []string) error {
	folders := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		folders = dash // the following arguments are the operator's
	}
	switch folders {
	case 1:
		return nil
	case 0:
		return errors.New("name the folder of the operator's main package: yare dev DIR (`yare dev .` for this one)")
	default:
		return errors.New("name one folder only: yare dev DIR; arguments of the operator go behind --")
	}
}
