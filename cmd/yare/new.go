package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
)

func newNew(out *console.Console) *cobra.Command {
	var p project
	cmd := &cobra.Command{
		Use:   "new PATH",
		Short: "Create the Go module of a new operator in PATH",
		Long: `new creates a Go module with a small operator, which you turn into your own: main.go, its
test, sample.yaml, README.md, AGENTS.md and a workflow for GitHub. Then it runs go mod tidy, which may
download Go modules. The folder must be empty, or not exist.

The last part of PATH is the name of the operator. Its kind follows from the name: of
./web-app and of ./web-app-operator it is WebApp.

Run from a clone of yare, new writes a replace directive for that clone into go.mod.`,
		Example: `  yare new ./web-app
  yare new ./backup-operator --module github.com/me/backup-operator --group backup.example.org`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("name one folder to create: yare new PATH, such as yare new ./web-app")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Dir = args[0]
			return createProject(cmd.Context(), out, p)
		},
	}
	cmd.Flags().StringVar(&p.Module, "module", "", "the `PATH` of the Go module (default: example.com/NAME)")
	cmd.Flags().StringVar(&p.Kind, "kind", "", "the `KIND` of the custom resource, such as WebApp (default: from the name)")
	cmd.Flags().StringVar(&p.Group, "group", "example.com", "the API `GROUP` of the custom resource")
	return cmd
}

// createProject writes a project and makes its go.sum.
func createProject(ctx context.Context, out *console.Console, p project) error {
	p, err := p.complete()
	if err != nil {
		return err
	}
	yare, err := plane.OwnLocation()
	if err != nil {
		return err
	}
	names, err := p.write(yare)
	if err != nil {
		return err
	}
	out.Printf("created %s in %s (module %s, kind %s of %s)", strings.Join(names, ", "), p.Dir, p.Module, p.Kind, p.Group)
	if yare.Dir != "" {
		out.Printf("go.mod replaces yare by the clone %s, because this yare is no published version", yare.Dir)
	}
	out.Printf("running go mod tidy")
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir = p.Dir
	// A workspace around the folder does not contain it.
	tidy.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if text, err := tidy.CombinedOutput(); err != nil {
		return fmt.Errorf("the files are in %s, but go mod tidy failed there; run it again: %w\n%s", p.Dir, err, strings.TrimSpace(string(text)))
	}
	shown := p.Dir
	if here, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(here, p.Dir); err == nil && !strings.HasPrefix(relative, "..") {
			shown = relative
		}
	}
	out.Printf("cd %s && go tool yare dev .   runs the operator on a Kubernetes control plane of this machine, and again at every save", shown)
	out.Printf("go test ./...   tests it on such a control plane. The first run compiles Kubernetes, which takes some minutes")
	out.Printf("main.go has the resource, the reconcile and the main function, and AGENTS.md the rules of a reconcile")
	return nil
}
