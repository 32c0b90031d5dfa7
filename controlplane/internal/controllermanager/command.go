// Package controllermanager runs the stock controllers of kube-controller-manager so that
// tests need not wait: the garbage collector notices a new CustomResourceDefinition within a
// second instead of 30, the namespace controller does not wait before it deletes, and the
// controllers of workloads look at all their objects every few seconds, so that their back-off
// does not grow to minutes.
//
// The command takes the flags of the stock command. It does not serve HTTP and does not
// elect a leader: there is only one, and its parent watches it.
package controllermanager

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"github.com/yare-go/yare/controlplane/internal/lifeline"
	"github.com/yare-go/yare/controlplane/internal/serverwait"
)

// Main runs the command `kube-controller-manager` and returns the exit status.
func Main(args []string, line lifeline.Lifeline) int {
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	command := &cobra.Command{
		Use:  "kube-controller-manager",
		Args: cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			rest.SetDefaultWarningHandler(rest.NoWarnings{}) // it watches deprecated APIs too
			return s.ComponentGlobalsRegistry.Set()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(s.Logs, utilfeature.DefaultFeatureGate); err != nil {
				return fmt.Errorf("apply the logging flags: %w", err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			c, err := s.Config(ctx, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
			if err != nil {
				return fmt.Errorf("read the configuration: %w", err)
			}
			if err := serverwait.WaitUsable(ctx, c.Kubeconfig); err != nil {
				return err
			}
			return run(ctx, c.Complete(), line)
		},
	}
	flags := s.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	for _, set := range flags.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	command.SetArgs(args)
	command.SetContext(context.Background())
	return cli.Run(command)
}
