// Package kubelet simulates nodes: it registers them, keeps them alive, and makes the
// Pods that are bound to them look as if their containers ran. Nothing is run.
package kubelet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/yare-go/yare/controlplane/internal/lifeline"
	"github.com/yare-go/yare/controlplane/internal/serverwait"
	"github.com/yare-go/yare/controlplane/internal/storage"
)

// Main runs the command `kubelet`.
func Main(args []string, line lifeline.Lifeline) error {
	flags := flag.NewFlagSet("kubelet", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig `file` (required)")
	count := flags.Int("nodes", 1, "`number` of nodes")
	cert := flags.String("tls-cert-file", "", "serving certificate (required)")
	key := flags.String("tls-private-key-file", "", "its key (required)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	// The server decides what is too much.
	config.QPS = -1
	config.UserAgent = "yare-simulated-kubelet"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer listener.Close()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serverwait.WaitUsable(ctx, config); err != nil {
		return err
	}
	nodes := newNodes(client, *count, listener.Addr().(*net.TCPAddr).Port)
	pods := newPods(client, nodes.names())

	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	failed := make(chan error, 1)
	// causeOf returns the error of the server if there is one: the server ends ctx, so that err follows from it.
	causeOf := func(err error) error {
		select {
		case cause := <-failed:
			return cause
		default:
			return err
		}
	}
	group.Go(func() {
		if err := serve(ctx, listener, *cert, *key); err != nil {
			failed <- err
			stop()
		}
	})
	group.Go(func() { pods.run(ctx) })
	// Without simulated nodes, Pods would look for the contents of simulated volumes.
	if *count > 0 {
		if err := storage.CreateDefaultClass(ctx, client); err != nil {
			return causeOf(err)
		}
		group.Go(func() { storage.NewProvisioner(client).Run(ctx) })
	}
	if err := nodes.register(ctx); err != nil {
		return causeOf(err)
	}
	line.Ready()
	nodes.keepAlive(ctx)
	return causeOf(nil)
}
