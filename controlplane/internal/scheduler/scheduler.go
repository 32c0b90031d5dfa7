// Package scheduler is the stock kube-scheduler command.
package scheduler

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/yare-go/yare/controlplane/internal/serverwait"
)

// Main runs the command `kube-scheduler` and returns the exit status.
func Main(args []string) int {
	command := app.NewSchedulerCommand()
	command.SetArgs(args)
	if err := waitForServer(args); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		return 1
	}
	return cli.Run(command)
}

// waitForServer waits for the API server of the kubeconfig among the arguments, if there
// is one. The stock command would try at once, and then for the first time again after
// a second.
func waitForServer(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop() // the stock command installs its own handler
	for _, arg := range args {
		path, found := strings.CutPrefix(arg, "--kubeconfig=")
		if !found {
			continue
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		return serverwait.WaitUsable(ctx, config)
	}
	return nil
}
