//go:build linux

// Package node runs the components of a real node, in the namespaces of the node.
package node

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/yare-go/yare/realnode/internal/control"
	"github.com/yare-go/yare/realnode/internal/dns"
	"github.com/yare-go/yare/realnode/internal/images"
	"github.com/yare-go/yare/realnode/internal/layout"
	"github.com/yare-go/yare/realnode/internal/network"
	"github.com/yare-go/yare/realnode/internal/programs"
)

// Command is the name of this package's command.
const Command = "node"

// thisProgram is the path of this program. Its own path may be hidden in the node's mount namespace.
const thisProgram = "/proc/self/exe"

// linkTimeout bounds the wait for the link to the machine, which exists when the node is asked to
// start.
const linkTimeout = 10 * time.Second

// Main runs a node until the end of stdin. It returns the exit status.
func Main(args []string, stdin io.Reader, stdout io.Writer) int {
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	slot := flags.Int("slot", 0, "`number` of the node's slot")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	n := &node{layout: layout.Layout{Slot: *slot}, output: control.NewWriter(stdout)}
	if err := n.run(control.Requests(stdin)); err != nil {
		n.output.Write(control.Event{Event: control.Failed, Error: err.Error()})
		return 1
	}
	return 0
}

type node struct {
	layout layout.Layout
	output *control.Writer
}

// errEnd is the cause of a context that ended because nobody needs the node any more.
var errEnd = errors.New("the node was asked to end")

// run carries out the requests until there will be no more, or a component keeps failing. The
// components end with run. Remaining processes end with the first process of the namespaces.
func (n *node) run(requests <-chan control.Request) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(errEnd)
	runInBackground := func(run func(context.Context) error) {
		running.Go(func() {
			if err := run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case request, more := <-requests:
			if !more {
				return nil
			}
			var err error
			switch request.Do {
			case control.Start:
				err = n.start(ctx, runInBackground)
			case control.Join:
				err = n.join(runInBackground)
			default:
				err = fmt.Errorf("unknown request %q", request.Do)
			}
			if err != nil {
				return err
			}
		}
	}
}

// start sets up the network and starts containerd.
func (n *node) start(ctx context.Context, runInBackground func(func(context.Context) error)) error {
	found, err := programs.Find()
	if err != nil {
		return err
	}
	linkCtx, cancel := context.WithTimeout(ctx, linkTimeout)
	defer cancel()
	if err := network.ConfigureNode(linkCtx, n.layout); err != nil {
		return err
	}
	snapshotter, err := images.Snapshotter(n.layout.Dir())
	if err != nil {
		return err
	}
	if err := writeConfigs(n.layout, found.CNI, snapshotter); err != nil {
		return err
	}
	runInBackground(n.component("containerd", found.Containerd, "--config", n.layout.Path(layout.ContainerdConf)).run)
	return nil
}

// join starts the components that are clients of the API server.
func (n *node) join(runInBackground func(func(context.Context) error)) error {
	config, err := clientcmd.BuildConfigFromFlags("", n.layout.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read the kubeconfig of the node: %w", err)
	}
	config.UserAgent = "yare-node"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	// The client of the DNS server logs when the API server ends.
	log, err := openLog(n.layout, "dns")
	if err != nil {
		return err
	}
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(log, nil)))
	server, err := dns.Listen(n.layout.NodeAddress())
	if err != nil {
		return err
	}
	runInBackground(func(ctx context.Context) error { return server.Run(ctx, client) })
	runInBackground(n.component("kubelet", thisProgram, "kubelet",
		"--config="+n.layout.Path(layout.KubeletConf),
		"--kubeconfig="+n.layout.Kubeconfig(),
		"--hostname-override="+layout.NodeName,
		"--node-ip="+n.layout.NodeAddress().String(),
		"--v=2").run)
	runInBackground(n.component("kube-proxy", thisProgram, "kube-proxy",
		"--config="+n.layout.Path(layout.ProxyConf),
		"--v=2").run)
	return nil
}

func (n *node) component(name, path string, args ...string) component {
	return component{name: name, layout: n.layout, output: n.output, path: path, args: args}
}
