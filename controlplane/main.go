// Command controlplane is a Kubernetes control plane in one binary: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, a kubelet that simulates its
// Pods, and kubectl. `controlplane up` runs the others as its children.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/yare-go/yare/controlplane/internal/apiserver"
	"github.com/yare-go/yare/controlplane/internal/controllermanager"
	"github.com/yare-go/yare/controlplane/internal/etcd"
	"github.com/yare-go/yare/controlplane/internal/kubectl"
	"github.com/yare-go/yare/controlplane/internal/kubelet"
	"github.com/yare-go/yare/controlplane/internal/lifeline"
	"github.com/yare-go/yare/controlplane/internal/release"
	"github.com/yare-go/yare/controlplane/internal/scheduler"
	"github.com/yare-go/yare/controlplane/internal/up"
)

const usage = `controlplane is a Kubernetes control plane in one binary.

Usage:
  controlplane up [flags]        run a whole control plane until interrupted
  controlplane kubectl ARGS...   the stock kubectl

and, as children of up:
  controlplane etcd | kube-apiserver | kube-controller-manager | kube-scheduler | kubelet ARGS...

Each takes --help.
`

func main() {
	os.Exit(run())
}

// run returns the exit status.
func run() int {
	if filepath.Base(os.Args[0]) != "kubectl" { // a link with the name kubectl acts as kubectl
		if len(os.Args) < 2 {
			fmt.Fprint(os.Stderr, usage)
			return 2
		}
		os.Args = os.Args[1:]
	}
	if err := release.Set(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	collectLessAtStart()
	line := lifeline.Inherited()
	line.ExitWithParent()
	args := os.Args[1:]
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		return exitStatus(etcd.Main(args, line))
	case "kube-apiserver":
		return apiserver.Main(args)
	case "kube-controller-manager":
		return controllermanager.Main(args, line)
	case "kube-scheduler":
		return scheduler.Main(args)
	case "kubectl":
		kubectl.Main()
		return 0
	case "kubelet":
		return exitStatus(kubelet.Main(args, line))
	case "up":
		return up.Main(args, os.Stdin, os.Stdout, os.Stderr)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return 0
	default:
		fmt.Fprintf(os.Stderr, "controlplane: unknown command %q\n\n%s", name, usage)
		return 2
	}
}

// exitStatus prints err, which may be nil, and returns the exit status.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "controlplane:", err)
	return 1
}

// collectLessAtStart makes the garbage collector run less often for the first seconds. A component allocates most of
// what it keeps when it starts. The collection of garbage at that time would cost an eighth of all
// processor time until the plane is ready.
func collectLessAtStart() {
	const (
		percent = 400
		normal  = 100
		period  = 10 * time.Second
	)
	if os.Getenv("GOGC") != "" {
		return // the user knows better
	}
	debug.SetGCPercent(percent)
	time.AfterFunc(period, func() {
		debug.SetGCPercent(normal)
		debug.FreeOSMemory() // several planes may run beside each other
	})
}
