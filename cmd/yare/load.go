package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/internal/plane"
)

func newLoad() *cobra.Command {
	return &cobra.Command{
		Use:   "load FILE...",
		Short: "Give images in tar files to the real node that runs",
		Long: `load gives the images in tar files, such as yare image -o writes, to the real node of the
control plane that runs in this project (yare up --real-node). Pods use them by tag or by digest.

KUBECONFIG chooses another control plane, as it does for yare kubectl.`,
		Example: `  yare image -o /tmp/webapp.tar ./examples/webapp
  yare load /tmp/webapp.tar`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			running, err := plane.List()
			if err != nil {
				return err
			}
			project, err := plane.Project(".")
			if err != nil {
				return err
			}
			chosen, err := choosePlane(nil, os.Getenv("KUBECONFIG"), project, running)
			if err != nil {
				return err
			}
			if chosen.Node == nil {
				return errors.New("no real node of yours runs here: start one by `" + shownCommand() + " up --real-node`")
			}
			argv := []string{chosen.Node.Binary, "load", "--address", chosen.Node.Socket}
			for _, arg := range args {
				path, err := filepath.Abs(arg)
				if err != nil {
					return err
				}
				argv = append(argv, path)
			}
			// The program of the node replaces this process: its status is ours.
			if err := syscall.Exec(chosen.Node.Binary, argv, os.Environ()); err != nil {
				return fmt.Errorf("run %s: %w", chosen.Node.Binary, err)
			}
			return nil
		},
	}
}
