//go:build linux

// Command realnode runs one real Kubernetes node on this machine, beside a control plane of yare:
// containerd, the stock kubelet and the stock kube-proxy, in namespaces of their own.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the metrics of requests to the API server
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric of the version
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/yare-go/yare/realnode/internal/images"
	"github.com/yare-go/yare/realnode/internal/node"
	"github.com/yare-go/yare/realnode/internal/sandbox"
	"github.com/yare-go/yare/realnode/internal/up"
)

const usage = `realnode runs one real Kubernetes node on this machine.

Usage:
  realnode up [--load FILE.tar]...                  run the node; yare up --real-node calls it
  realnode load --address SOCKET FILE.tar...        give images to a node that runs

and, as children of up:
  realnode init | node | kubelet | kube-proxy ARGS...
`

func main() {
	os.Exit(run())
}

// run returns the exit status.
func run() int {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	args := os.Args[2:]
	switch name := os.Args[1]; name {
	case "up":
		return up.Main(args, os.Stdin, os.Stdout, os.Stderr)
	case "load":
		return images.Main(args, os.Stdout, os.Stderr)
	case sandbox.Command:
		return sandbox.Main(args)
	case node.Command:
		return node.Main(args, os.Stdin, os.Stdout)
	case "kubelet":
		return runKubelet(args)
	case "kube-proxy":
		return runProxy(args)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return 0
	default:
		fmt.Fprintf(os.Stderr, "realnode: unknown command %q\n\n%s", name, usage)
		return 2
	}
}

// runKubelet runs the stock kubelet and returns its exit status.
func runKubelet(args []string) int {
	command := kubelet.NewKubeletCommand(context.Background())
	command.SetArgs(args)
	return cli.Run(command)
}

// runProxy runs the stock kube-proxy and returns its exit status.
func runProxy(args []string) int {
	command := proxy.NewProxyCommand()
	command.SetArgs(args)
	return cli.Run(command)
}
