package main

import (
	"errors"
	"io"
	"os"
	"strings"

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
ready to be used; Ctrl-C ends it and removes everything it made.

With --real-node, Pods run: there is a real kubelet, kube-proxy, Pod network and containerd in
place of the simulated nodes, in namespaces of their own. That needs Linux, root and installed
programs (Debian and Ubuntu: containerd nftables containernetworking-plugins). The node pulls no
images; it gets them from tar files, such as yare image -o writes.`,
		Example: `  yare up
  yare up --kubeconfig /tmp/cluster.yaml --nodes 3
  yare up --kubernetes 1.36
  yare up --real-node --load /tmp/webapp.tar`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.Images) > 0 && !o.RealNode {
				return errors.New("--load gives an image to a real node, and simulated nodes run none: add --real-node")
			}
			if o.Nodes > 0 && o.RealNode {
				return errors.New("--nodes sets the number of simulated nodes, and --real-node replaces them: use one of the two")
			}
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
	cmd.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "",
		"write the access to the cluster to this `FILE` (default: one in a temporary folder)")
	cmd.Flags().IntVar(&o.Nodes, "nodes", 0, "number of simulated nodes (default: the control plane's)")
	addMinorFlags(cmd, &o.Finder.Kubernetes, &o.Emulate)
	cmd.Flags().BoolVar(&o.RealNode, "real-node", false,
		"run Pods on a real node in place of simulated ones (Linux, root)")
	cmd.Flags().StringArrayVar(&o.Images, "load", nil, "give the image in this tar `FILE` to the real node (repeatable)")
	cmd.Flags().BoolVarP(&o.Verbose, "verbose", "v", false, "show the control plane's own log")
	return cmd
}

// addMinorFlags adds the flags for the version of Kubernetes.
func addMinorFlags(cmd *cobra.Command, minor, emulated *string) {
	cmd.Flags().StringVar(minor, "kubernetes", "", "the `MINOR` of Kubernetes, which is compiled once: "+
		strings.Join(plane.Minors(), ", ")+" (default: that of "+plane.KubernetesVariable+", else "+plane.DefaultMinor()+")")
	cmd.Flags().StringVar(emulated, "emulate", "", "let Kubernetes "+plane.DefaultMinor()+
		" have the APIs and feature gates of this older `MINOR`; its code stays, so it proves nothing about that minor")
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
	out.Printf("the control plane is ready (%s) at %s", console.Duration(p.StartDuration()), p.Server())
	out.Printf("use it from another terminal:")
	out.Printf("  %s kubectl get nodes", shownCommand())
	out.Printf("  export KUBECONFIG=%s", p.Kubeconfig())
	out.Printf("Ctrl-C ends it and removes everything")
	select {
	case <-ctx.Done():
		return nil
	case <-p.Done():
		return p.Err()
	case <-p.NodeDone():
		return p.NodeErr()
	}
}
