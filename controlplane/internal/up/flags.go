package up

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// maxNodes is how many simulated nodes have a range of Pod addresses of their own.
const maxNodes = 64

// options are the options of the command line.
type options struct {
	kubeconfig    string
	dir           string
	nodes         int
	emulated      string
	etcd          string
	apiServerArgs []string
	control       bool
	verbose       bool
}

const help = `up runs a whole Kubernetes control plane in the foreground: etcd, kube-apiserver,
kube-controller-manager, kube-scheduler and simulated nodes. It ends with Ctrl-C and
leaves nothing behind. Everything listens on 127.0.0.1 only.

Usage:
  controlplane up [flags]

Flags:
`

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"`file` that appears when the plane is ready and goes when it stops (default: kubeconfig in the plane's folder)")
	flags.StringVar(&o.dir, "dir", "", "the plane's private `folder`; it is removed at the end (default: a temporary one)")
	flags.IntVar(&o.nodes, "nodes", 1, "`number` of simulated nodes")
	flags.Func("apiserver-arg", "one more `argument` for kube-apiserver, such as --watch-cache=false (repeatable)",
		func(arg string) error {
			if !strings.HasPrefix(arg, "-") {
				return fmt.Errorf("want a flag of kube-apiserver, such as --watch-cache=false")
			}
			o.apiServerArgs = append(o.apiServerArgs, arg)
			return nil
		})
	flags.StringVar(&o.emulated, "emulate", "", "the minor `version` of Kubernetes whose APIs and feature gates the components have, such as 1.34")
	flags.StringVar(&o.etcd, "etcd", "", "the `URL` of another program that serves the API of etcd (default: an etcd of the plane)")
	flags.BoolVar(&o.control, "control", false,
		"speak JSON lines: events and answers on standard output, requests on standard input, whose end stops the plane")
	flags.BoolVar(&o.verbose, "v", false, "copy the logs of the components to standard error")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), help)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("up takes no arguments, got %q", flags.Args())
	}
	if o.nodes < 0 || o.nodes > maxNodes {
		return o, fmt.Errorf("--nodes: want 0 to %d, got %d", maxNodes, o.nodes)
	}
	return o, nil
}

// isHelp reports whether an error of parse means that help was asked for, and shown.
func isHelp(err error) bool { return errors.Is(err, flag.ErrHelp) }
