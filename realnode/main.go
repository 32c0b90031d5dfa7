//go:build linux

// Command realnode runs one real Kubernetes node on this machine, beside a control plane of yare:
// containerd, the stock kubelet and the stock kube-proxy, in namespaces of their own.
package main

import (
	"fmt"
	"os"

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
