package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/process"
)

func newUp(out *console.Console) *cobra.Command {
	var o plane.Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run the control plane until Ctrl-C",
		Long: `up runs the control plane in the foreground. The kubeconfig file appears when it is
ready to be used; Ctrl-C ends it and removes everything it made.`,
		Example: `  yare up
  yare up --kubeconfig /tmp/cluster.yaml --nodes 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			process.EndWithGo()
			o.Console = out
			o.Title = "yare up"
			if o.Kubeconfig != "" {
				o.Title += " --kubeconfig " + o.Kubeconfig
			}
			o.Log = verboseLog(o.Verbose)
			return up(cmd, o)
		},
	}
	cmd.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "", "write the access to the cluster to this `FILE` (default: one in a temporary folder)")
	cmd.Flags().IntVar(&o.Nodes, "nodes", 0, "number of simulated nodes (default: the control plane's)")
	cmd.Flags().BoolVarP(&o.Verbose, "verbose", "v", false, "show the control plane's own log")
	return cmd
}

func verboseLog(verbose bool) io.Writer {
	if verbose {
		return os.Stderr
	}
	return nil
}

func up(cmd *cobra.Command, o plane.Options) error {
	ctx, out := cmd.Context(), o.Console
	p, err := plane.Start(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil // interrupted by the user
		}
		return err
	}
	defer p.Close()
	out.Printf("the control plane is ready (%s) at %s", console.Duration(p.Boot()), p.Server())
	out.Printf("use it from another terminal:")
	out.Printf("  %s kubectl get nodes", invocation())
	out.Printf("  export KUBECONFIG=%s", p.Kubeconfig())
	out.Printf("Ctrl-C ends it and removes everything")
	select {
	case <-ctx.Done():
		return nil
	case <-p.Done():
		return p.Err()
	}
}
