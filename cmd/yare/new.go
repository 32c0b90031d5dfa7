package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/durations"
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
	cmd.Flags().StringVar(&p.Kind, "kind", "",
		"the `KIND` of the custom resource, such as WebApp (default: from the name)")
	cmd.Flags().StringVar(&p.Group, "group", "example.com", "the API `GROUP` of the custom resource")
	return cmd
}

// createProject writes a project and makes its go.sum.
func createProject(ctx context.Context, out *console.Console, p project) error {
	shown := p.Dir // as the user wrote it
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
	out.Printf("created %s in %s", strings.Join(names, ", "), shown)
	out.Printf("the Go module is %s, and its objects have the kind %s in the group %s", p.Module, p.Kind, p.Group)
	if yare.Dir != "" {
		out.Printf("go.mod replaces yare by the clone %s, because this yare is no published version", yare.Dir)
	}
	out.Printf("running go mod tidy")
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir = p.Dir
	// A workspace around the folder does not contain it.
	tidy.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	started, last := time.Now(), durations.Default()
	stop := last.Show(out, "go mod tidy", "running go mod tidy")
	text, err := tidy.CombinedOutput()
	stop()
	if err != nil {
		return fmt.Errorf("the files are in %s, but go mod tidy failed there; run it again: %w\n%s",
			p.Dir, err, strings.TrimSpace(string(text)))
	}
	last.Record("go mod tidy", time.Since(started))
	for _, each := range nextSteps(shown) {
		out.Printf("%s", each)
	}
	return nil
}

// nextSteps returns the commands that follow after a project was created in a folder, each with a comment of the shell.
func nextSteps(folder string) []string {
	if strings.ContainsAny(folder, " \t'\"$&;|()*?<>\\`") {
		folder = "'" + strings.ReplaceAll(folder, "'", `'\''`) + "'"
	}
	steps := [][2]string{
		{"cd " + folder, "main.go is the operator, and AGENTS.md has the rules of a reconcile"},
		{"go tool yare dev .", "runs it on a Kubernetes control plane of this machine"},
		{"go test ./...", "tests it there; the first run compiles Kubernetes: some minutes"},
	}
	width := 0
	for _, s := range steps {
		width = max(width, len(s[0]))
	}
	var lines []string
	for _, s := range steps {
		lines = append(lines, fmt.Sprintf("  %-*s  # %s", width, s[0], s[1]))
	}
	return lines
}
