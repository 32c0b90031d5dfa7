package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
)

func newKubectl(out *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGUMENTS]",
		Short: "kubectl of the control plane's own version",
		Long: `kubectl passes its arguments on to the kubectl in the control plane binary.

KUBECONFIG, or a flag such as --kubeconfig or --context, says which cluster is meant. When
neither does, it is that of the control plane which runs in this project: one that was
started (yare up, yare dev) in the same folder or the same Go module. A line on standard
error names it. No other cluster is taken in its place: not a control plane of another
project, and not that of ~/.kube/config.`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			running, err := plane.List()
			if err != nil {
				return err
			}
			project, err := plane.Project(".")
			if err != nil {
				return err
			}
			chosen, err := choosePlane(args, os.Getenv("KUBECONFIG"), project, running)
			if err != nil {
				return err
			}
			binary := chosen.Binary
			// The binary of the running plane is found at once. The user may want another one.
			if binary == "" || os.Getenv(plane.ControlPlane().Variable()) != "" || !isFile(binary) {
				if binary, err = (plane.Finder{Console: out}).Find(cmd.Context()); err != nil {
					return err
				}
			}
			env := os.Environ()
			if os.Getenv("KUBECONFIG") == "" && !hasClusterFlag(args) {
				kubeconfig := chosen.Kubeconfig
				if kubeconfig != "" {
					out.Printf("this is the cluster of `%s` (KUBECONFIG=%s)", chosen.Title, kubeconfig)
				} else {
					out.Printf("no control plane of yours runs: `%s up` starts one, and KUBECONFIG names another cluster",
						shownCommand())
					kubeconfig = os.DevNull // in place of ~/.kube/config, which nobody asked for
				}
				env = append(env, "KUBECONFIG="+kubeconfig)
			}
			// kubectl replaces this process: it gets the terminal, and its status is ours.
			argv := append([]string{binary, "kubectl"}, args...)
			if err := syscall.Exec(binary, argv, env); err != nil {
				return fmt.Errorf("run %s: %w", binary, err)
			}
			return nil
		},
	}
}

// choosePlane returns the running plane that a call of kubectl in a project means: the plane of kubeconfig if
// kubeconfig is not empty, or else the plane of the project. It returns the zero value if args or kubeconfig name
// another cluster, and if no plane runs.
func choosePlane(args []string, kubeconfig, project string, running []plane.Running) (plane.Running, error) {
	if hasClusterFlag(args) {
		return plane.Running{}, nil
	}
	if kubeconfig != "" {
		for _, r := range running {
			if r.Kubeconfig == kubeconfig {
				return r, nil
			}
		}
		return plane.Running{}, nil
	}
	var here []plane.Running
	for _, r := range running {
		if slices.Contains(r.Projects, project) {
			here = append(here, r)
		}
	}
	switch {
	case len(running) == 0:
		return plane.Running{}, nil
	case len(here) == 1:
		return here[0], nil
	case len(here) == 0:
		return plane.Running{}, fmt.Errorf("no control plane runs in the project %s; choose one of another project:%s",
			project, describePlanes(running))
	}
	return plane.Running{}, fmt.Errorf("several control planes run in the project %s; choose one:%s",
		project, describePlanes(here))
}

// describePlanes returns a line for each plane, with the command that chooses it.
func describePlanes(planes []plane.Running) string {
	var b strings.Builder
	for _, r := range planes {
		fmt.Fprintf(&b, "\n  export KUBECONFIG=%s   # %s, since %s",
			r.Kubeconfig, r.Title, r.Started.Local().Format("15:04:05"))
		if len(r.Projects) > 0 {
			fmt.Fprintf(&b, ", in %s", r.Projects[0])
		}
	}
	return b.String()
}

// hasClusterFlag reports whether a flag among the arguments of kubectl names a cluster.
func hasClusterFlag(args []string) bool {
	for _, arg := range args {
		if arg == "--" {
			return false // what follows is a command to run in a container
		}
		name, _, _ := strings.Cut(arg, "=")
		switch name {
		case "--kubeconfig", "--context", "--cluster", "--server", "-s":
			return true
		}
		if strings.HasPrefix(arg, "-shttp") {
			return true
		}
	}
	return false
}

// isFile reports whether name is a regular file.
func isFile(name string) bool {
	info, err := os.Stat(filepath.Clean(name))
	return err == nil && info.Mode().IsRegular()
}
