package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/internal/explore"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/report"
	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/process"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// The exit statuses of yare explore.
const (
	statusFound       = 1
	statusNoReference = 2
	statusIncomplete  = 3
)

// exploreFlags are the flags of yare explore.
type exploreFlags struct {
	options explore.Options
	only    []string
	install []string
	sample  string
	accept  string
	report  string
	replay  string
	list    bool
	plane   bool
	verbose bool
	account string
	cover   bool
}

func newExplore(out *console.Console) *cobra.Command {
	var f exploreFlags
	cmd := &cobra.Command{
		Use:   "explore PATH [-- ARGS]",
		Short: "Run an operator under the faults that Kubernetes allows, and compare what it leaves",
		Long: `explore runs the operator in PATH, a Go main package or a program, on a control plane of its
own, many times: first without faults, then with one fault in each run, or with other values
in the sample. It compares the objects that the operator leaves with those that it leaves without
faults, over the whole history of each run.

The user of the operator applies the objects in PATH/sample.yaml, and deletes them in the end.
An operator that does not use yare needs --install with its CustomResourceDefinitions. In ARGS,
{kubeconfig}, {namespace} and {port1} are filled in; KUBECONFIG is set. An operator with a fixed
port needs --parallel 1.

A program that elects a leader, such as one that uses yare with --leader-elect in ARGS, loses its
lease to another replica at its writes. With --plane the API server and etcd are killed and paused.

Exit status: 0 complete and nothing found; 1 a finding; 2 no stable reference; 3 the time of --for
ended first.`,
		Example: `  yare explore ./examples/webapp
  yare explore --for 10m --only crash,watch --report /tmp/webapp.html ./examples/webapp
  yare explore --replay /tmp/webapp.json ./examples/webapp
  yare explore --plane ./examples/webapp -- --leader-elect
  yare explore --install crds.yaml --sample prometheus.yaml ./operator -- --namespaces={namespace}`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			process.EndWithGo()
			return runExplore(cmd.Context(), out, f, args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.options.Budget, "for", 0, "begin no new run after this time (default: make all planned runs)")
	flags.Uint64Var(&f.options.Seed, "seed", 0, "choose what is not done completely by this number")
	flags.StringSliceVar(&f.only, "only", nil, "only these kinds of faults: crash, request, watch, foreign, leader, transition, or single ones")
	flags.BoolVar(&f.plane, "plane", false, "also kill the API server and etcd, and pause etcd, in runs of their own after all others")
	flags.IntVar(&f.options.Parallel, "parallel", 0, "the number of runs at a time (default: two to eight for each processor, by the load, or one if the operator writes objects in no namespace)")
	flags.StringArrayVar(&f.install, "install", nil, "apply the objects in this `FILE` or folder before (repeatable; default: what the operator prints with crd)")
	flags.StringVar(&f.account, "account", "", "give the operator the permissions of this ServiceAccount, `NAMESPACE/NAME`, which --install makes (default: those of an administrator)")
	flags.BoolVar(&f.cover, "cover", false, "count the statements of the operator that run, which costs time; PATH is a Go main package")
	flags.StringVar(&f.sample, "sample", "", "the `FILE` of the samples (default: PATH/sample.yaml)")
	flags.StringVar(&f.accept, "accept", "", "leave out the differences that this `FILE` lists as intended, with reasons")
	flags.StringVar(&f.report, "report", "", "write the findings to this `FILE`: a page if it ends in .html, else JSON")
	flags.StringVar(&f.replay, "replay", "", "make the runs of the findings in this JSON `FILE` again")
	flags.BoolVar(&f.list, "list", false, "print the planned runs, and make the reference runs only")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show each run, and the control plane's own log")
	return cmd
}

func runExplore(ctx context.Context, out *console.Console, f exploreFlags, path string, args []string) error {
	for _, name := range f.only {
		kinds, err := faults.ParseKinds(name)
		if err != nil {
			return err
		}
		f.options.Only = append(f.options.Only, kinds...)
	}
	if f.accept != "" {
		var err error
		if f.options.Accepted, err = explore.ReadAcceptances(f.accept); err != nil {
			return err
		}
	}
	operator, folder, remove, err := openOperator(ctx, path, args, f.cover)
	if err != nil {
		return err
	}
	defer remove()
	if f.account != "" {
		if operator.Account, err = explore.ParseAccount(f.account); err != nil {
			return err
		}
	}
	if f.sample == "" {
		f.sample = filepath.Join(folder, "sample.yaml")
	}
	if f.options.Samples, err = explore.ReadSamples(f.sample); err != nil {
		return fmt.Errorf("read the samples: %w: name them with --sample", err)
	}
	text, err := definitions(ctx, operator, f.install)
	if err != nil {
		return err
	}
	p, err := plane.Start(ctx, plane.Options{Console: out, Title: "yare explore", Log: verboseLog(f.verbose)})
	if err != nil {
		return err
	}
	defer p.Close()
	if f.options.Config, _, err = (kube.ConfigSource{Kubeconfig: p.Kubeconfig()}).Load(); err != nil {
		return err
	}
	if f.plane {
		f.options.Plane = p
	}
	if err := explore.Install(ctx, f.options.Config, text); err != nil {
		return fmt.Errorf("install the kinds of %s: %w", operator, err)
	}
	f.options.Progress = progress(out, f.verbose)
	err = exploreOperator(ctx, operator, f)
	if errors.Is(err, explore.ErrNoReference) {
		return exitError{statusNoReference, err}
	}
	return err
}

func exploreOperator(ctx context.Context, operator explore.Operator, f exploreFlags) error {
	if f.list {
		all, err := explore.List(ctx, operator, f.options)
		for _, line := range all {
			fmt.Println(line)
		}
		return err
	}
	record, err := exploreOrReplay(ctx, operator, f)
	if err != nil {
		return err
	}
	if err := report.Text(os.Stdout, record); err != nil {
		return err
	}
	if f.report != "" {
		if err := explore.WriteReport(f.report, record); err != nil {
			return err
		}
	}
	return statusOf(record)
}

// replayTries is how often a finding is replayed.
const replayTries = 3

func exploreOrReplay(ctx context.Context, operator explore.Operator, f exploreFlags) (finding.Record, error) {
	if f.replay == "" {
		return explore.Explore(ctx, operator, f.options)
	}
	return explore.ReplayFile(ctx, operator, f.options, f.replay, replayTries)
}

// statusOf returns the error with the exit status of a record, or nil.
func statusOf(r finding.Record) error {
	count := 0
	for _, f := range r.Findings {
		if !f.Verdict.IsWarning() {
			count++
		}
	}
	switch {
	case count > 0:
		return exitError{statusFound, fmt.Errorf("findings: %d", count)}
	case !r.Coverage.Complete:
		return exitError{statusIncomplete, errors.New("nothing was found, and the time of --for ended before all planned runs were made")}
	}
	return nil
}

// openOperator returns the operator in a path, and the folder of its samples. remove removes what was
// compiled. The statements of an operator that is compiled are counted if cover is true.
func openOperator(ctx context.Context, path string, args []string, cover bool) (operator explore.Binary, folder string, remove func(), err error) {
	info, err := os.Stat(path)
	if err != nil {
		return operator, "", nil, err
	}
	operator.Args = args
	if !info.IsDir() && cover {
		return operator, "", nil, fmt.Errorf("--cover: %s is compiled already: name the folder of its main package", path)
	}
	if !info.IsDir() {
		operator.Path, err = filepath.Abs(path)
		return operator, filepath.Dir(path), func() {}, err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return operator, "", nil, err
	}
	temporary, err := os.MkdirTemp("", "yare-explore-")
	if err != nil {
		return operator, "", nil, err
	}
	operator.Path = filepath.Join(temporary, filepath.Base(absolute))
	build := exec.Command("go", "build", "-o", operator.Path)
	if cover {
		operator.CoverFolder = filepath.Join(temporary, "cover")
		if err := os.Mkdir(operator.CoverFolder, 0o700); err != nil {
			return operator, "", nil, errors.Join(err, os.RemoveAll(temporary))
		}
		build.Args = append(build.Args, "-cover")
	}
	build.Args = append(build.Args, ".")
	build.Dir = path
	var said strings.Builder
	build.Stdout, build.Stderr = &said, &said
	if err := process.Run(ctx, build); err != nil {
		return operator, "", nil, errors.Join(fmt.Errorf("build %s: %w\n%s", path, err, said.String()), os.RemoveAll(temporary))
	}
	return operator, path, func() { os.RemoveAll(temporary) }, nil
}

// definitions returns the objects in files, or the definitions that the operator prints with crd.
func definitions(ctx context.Context, operator explore.Binary, files []string) ([]byte, error) {
	if len(files) == 0 {
		return operator.CRDs(ctx)
	}
	return explore.ReadInstall(files)
}

// progress returns a function that prints the progress of an exploration: each run if verbose, else a line at times.
func progress(out *console.Console, verbose bool) func(explore.Progress) {
	var last time.Time
	return func(p explore.Progress) {
		switch {
		case verbose:
			out.Printf("run %d of %d, findings: %d: %s", p.Done, p.Total, p.Findings, p.Text)
		case time.Since(last) > 10*time.Second || p.Done == p.Total:
			last = time.Now()
			out.Printf("run %d of %d, findings: %d", p.Done, p.Total, p.Findings)
		}
	}
}
