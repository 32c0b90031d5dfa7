package main

import (
	"fmt"
	"os"
	"path/filepath"
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

When neither KUBECONFIG nor a flag says which cluster is meant, and one control plane of
yours runs (yare up, yare dev), that one is.`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			running, err := plane.List()
			if err != nil {
				return err
			}
			chosen, err := choose(args, os.Getenv("KUBECONFIG"), running)
			if err != nil {
				return err
			}
			binary := chosen.Binary
			// The binary of the plane that runs, which takes no time to find, unless the
			// user wants a certain one.
			if binary == "" || os.Getenv(plane.PrebuiltVariable) != "" || !exists(binary) {
				if binary, err = (plane.Finder{Console: out}).Find(cmd.Context()); err != nil {
					return err
				}
			}
			env := os.Environ()
			if chosen.Kubeconfig == "" && out.Live() && !namesCluster(args) && !ordinaryConfig() {
				out.Printf("no control plane of yours runs, and there is no ~/.kube/config: `%s up` starts one", invocation())
			}
			if chosen.Kubeconfig != "" && os.Getenv("KUBECONFIG") == "" {
				env = append(env, "KUBECONFIG="+chosen.Kubeconfig)
				if out.Live() {
					out.Printf("this is the cluster of `%s` (KUBECONFIG=%s)", chosen.Title, chosen.Kubeconfig)
				}
			}
			// In place of this process: kubectl gets the terminal, and its status is ours.
			argv := append([]string{binary, "kubectl"}, args...)
			if err := syscall.Exec(binary, argv, env); err != nil {
				return fmt.Errorf("running %s: %w", binary, err)
			}
			return nil
		},
	}
}

// choose picks the running plane that a call of kubectl means. The zero value means none
// of them: kubectl then finds its cluster as it always does.
func choose(args []string, kubeconfig string, running []plane.Running) (plane.Running, error) {
	if namesCluster(args) {
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
	switch len(running) {
	case 0:
		return plane.Running{}, nil
	case 1:
		return running[0], nil
	}
	var b strings.Builder
	b.WriteString("several control planes of yours run; say which is meant:")
	for _, r := range running {
		fmt.Fprintf(&b, "\n  export KUBECONFIG=%s   # %s, since %s", r.Kubeconfig, r.Title, r.Started.Local().Format("15:04:05"))
	}
	return plane.Running{}, fmt.Errorf("%s", b.String())
}

// ordinaryConfig tells whether kubectl finds a cluster without our help.
func ordinaryConfig() bool {
	if os.Getenv("KUBECONFIG") != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return true
	}
	home, err := os.UserHomeDir()
	return err == nil && exists(filepath.Join(home, ".kube", "config"))
}

// namesCluster tells whether arguments of kubectl say which cluster is meant.
func namesCluster(args []string) bool {
	for _, arg := range args {
		if arg == "--" {
			return false // What follows is a command to run in a container.
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

func exists(name string) bool {
	info, err := os.Stat(filepath.Clean(name))
	return err == nil && info.Mode().IsRegular()
}
