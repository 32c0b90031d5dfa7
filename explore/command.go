package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
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

// statusError is an error with an exit status.
type statusError struct {
	status int
	error
}

// Unwrap returns the error.
func (e statusError) Unwrap() error { return e.error }

// ExitStatus returns the exit status of the command.
func (e statusError) ExitStatus() int { return e.status }

// command holds the flags of yare explore.
type command struct {
	exploration
	// given are the settings that the flags set.
	given      Settings
	binary     Binary
	isList     bool
	stopsPlane bool
	isVerbose  bool
	out        *console.Console
}

// Command returns the command explore of the program yare. It prints progress to the standard error, and the
// report to the standard output. An error of the command that has a method ExitStatus() int names the exit
// status of the program.
func Command() *cobra.Command {
	c := command{out: console.New(os.Stderr, "yare")}
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
			c.binary.Path, c.binary.Args = args[0], args[1:]
			err := c.execute(cmd.Context())
			if errors.Is(err, engine.ErrNoReference) {
				return statusError{statusNoReference, err}
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&c.given.Budget, "for", 0, "begin no new run after this time (default: make all planned runs)")
	flags.Uint64Var(&c.given.Seed, "seed", 0, "choose what is not done completely by this number")
	flags.StringSliceVar(&c.given.Only, "only", nil, "only these kinds of faults: "+strings.Join(faults.Groups(), ", ")+", or single ones")
	flags.BoolVar(&c.stopsPlane, "plane", false, "also kill the API server and etcd, and pause etcd, in runs of their own after all others")
	flags.IntVar(&c.given.Parallel, "parallel", 0, "the number of runs at a time (default: two to eight for each processor, by the load, or one if the operator writes objects in no namespace)")
	flags.StringArrayVar(&c.binary.Install, "install", nil, "apply the objects in this `FILE` or folder before (repeatable; default: what the operator prints with crd)")
	flags.StringVar(&c.binary.Account, "account", "", "give the operator the permissions of this ServiceAccount, `NAMESPACE/NAME`, which --install makes (default: those of an administrator)")
	flags.BoolVar(&c.binary.Cover, "cover", false, "count the statements of the operator that run, which costs time; PATH is a Go main package")
	flags.StringVar(&c.given.SampleFile, "sample", "", "the `FILE` of the samples (default: PATH/sample.yaml)")
	flags.StringVar(&c.given.ValuesFile, "values", "", "also try the values of the objects in this `FILE`, which have the kinds and names of the samples")
	flags.StringVar(&c.given.PairsFile, "pairs", "", "make one object of each pair with similar names of the objects in this `FILE`, which has their references too")
	flags.StringVar(&c.given.AcceptFile, "accept", "", "leave out the differences that this `FILE` lists as intended, with reasons")
	flags.StringVar(&c.given.ReportFile, "report", "", "write the findings to this `FILE`: a page if it ends in .html, else JSON")
	flags.StringVar(&c.given.ReplayFile, "replay", "", "make the runs of the findings in this JSON `FILE` again")
	flags.BoolVar(&c.isList, "list", false, "print the planned runs, and make the reference runs only")
	flags.BoolVarP(&c.isVerbose, "verbose", "v", false, "show each run, and the control plane's own log")
	return cmd
}

// execute starts a control plane, and explores the operator on it.
func (c *command) execute(ctx context.Context) error {
	e, err := c.given.newExploration()
	if err != nil {
		return err
	}
	c.exploration = *e
	folder, err := os.MkdirTemp("", "yare-explore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := c.open(ctx, c.binary, folder); err != nil {
		return err
	}
	var log io.Writer
	if c.isVerbose {
		log = os.Stderr
	}
	p, err := plane.Start(ctx, plane.Options{Console: c.out, Title: "yare explore", Log: log})
	if err != nil {
		return err
	}
	defer p.Close()
	if c.settings.Config, _, err = (kube.ConfigSource{Kubeconfig: p.Kubeconfig()}).Load(); err != nil {
		return err
	}
	if c.stopsPlane {
		c.settings.Components = p
	}
	if err := c.install(ctx); err != nil {
		return err
	}
	c.settings.Progress = c.progress()
	if c.isList {
		return c.list(ctx)
	}
	record, err := c.run(ctx)
	if err != nil {
		return err
	}
	if err := c.writeReports(os.Stdout, record); err != nil {
		return err
	}
	return statusOf(record)
}

// list prints the planned runs.
func (c *command) list(ctx context.Context) error {
	all, err := engine.List(ctx, c.operator, c.settings)
	for _, line := range all {
		fmt.Println(line)
	}
	return err
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
		return statusError{statusFound, fmt.Errorf("findings: %d", count)}
	case !r.Coverage.Complete:
		return statusError{statusIncomplete, errors.New("nothing was found, and the time of --for ended before all planned runs were made")}
	}
	return nil
}

// progress returns a function that prints the progress of an exploration: each run if that is asked for, else a
// line every ten seconds.
func (c *command) progress() func(engine.Progress) {
	var last time.Time
	return func(p engine.Progress) {
		switch {
		case c.isVerbose:
			c.out.Printf("run %d of %d, findings: %d: %s", p.Done, p.Total, p.Findings, p.Text)
		case time.Since(last) > 10*time.Second || p.Done == p.Total:
			last = time.Now()
			c.out.Printf("run %d of %d, findings: %d", p.Done, p.Total, p.Findings)
		}
	}
}
