package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/durations"
	"github.com/yare-go/yare/internal/plane/process"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// The exit statuses of yare explore.
const (
	statusFound       = 1
	statusNotExplored = 2
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
	// flagSettings are the settings that the flags set.
	flagSettings Settings
	binary       Binary
	// look and empty are the commands for Settings.LookOutside and Settings.EmptyOutside.
	look, empty string
	// passedVariables are the names of the environment variables to pass on.
	passedVariables []string
	isList          bool
	stopsPlane      bool
	// kubernetes and emulated are the versions of the control plane: see [plane.Options].
	kubernetes, emulated string
	isVerbose            bool
	out                  *console.Console
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

The environment of the operator has PATH, a HOME and a TMPDIR of its own, and what --env passes.

Exit status: 0 nothing found, and each kind of fault that can happen has happened; 1 a finding, whatever
else happened; 2 the operator could not be explored; 3 nothing found, but a kind that can happen has not
happened, as a rule because the time of --for ended first.`,
		Example: `  yare explore ./examples/webapp
  yare explore --for 10m --only crash,watch --report /tmp/webapp.html ./examples/webapp
  yare explore --replay /tmp/webapp.json ./examples/webapp
  yare explore --plane ./examples/webapp -- --leader-elect
  yare explore --install crds.yaml --sample prometheus.yaml ./operator -- --namespaces={namespace}`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			process.EndWithGo()
			c.binary.Path, c.binary.Args = args[0], args[1:]
			c.binary.Env = append(c.binary.Env, c.passedVariables...)
			return withStatus(c.execute(cmd.Context()))
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return withStatus(err) })
	flags := cmd.Flags()
	flags.DurationVar(&c.flagSettings.Budget, "for", 0,
		"begin no new run after this time, and cut runs that last much longer (default: make all planned runs)")
	flags.Uint64Var(&c.flagSettings.Seed, "seed", 0, "choose what is not done completely by this number")
	flags.StringSliceVar(&c.flagSettings.Only, "only", nil,
		"only these kinds of faults: "+strings.Join(faults.Groups(), ", ")+", or single ones")
	flags.StringSliceVar(&c.flagSettings.Except, "except", nil, "all kinds of faults but these, which are named as for --only")
	flags.BoolVar(&c.flagSettings.Exhaustive, "all", false,
		"make every pair of a kind of fault and a request, in place of some kinds at each request")
	flags.StringArrayVar(&c.passedVariables, "env", nil,
		"pass the environment variable `NAME` on to the operator, or set NAME=VALUE (repeatable)")
	flags.DurationVar(&c.flagSettings.Settle, "settle", 0, "call a run at rest only after this time without a change: for an operator that works on an external system, and does not use yare")
	flags.StringVar(&c.flagSettings.OutsideAddress, "outside", "", "also refuse, cut and delay the connections to the external system at `HOST:PORT`; {outside} is filled in as the address for the operator")
	flags.StringVar(&c.look, "look", "",
		"compare the lines that this shell `COMMAND` prints about the external system; {namespace} is that of the run")
	flags.StringVar(&c.empty, "empty", "", "remove what a run has left in the external system by this shell `COMMAND`")
	flags.BoolVar(&c.stopsPlane, "plane", false,
		"also kill the API server and etcd, and pause etcd, in runs of their own after all others")
	flags.StringVar(&c.kubernetes, "kubernetes", "", "the `MINOR` of Kubernetes: "+strings.Join(plane.Minors(), ", ")+
		" (default: that of "+plane.KubernetesVariable+", else "+plane.DefaultMinor()+")")
	flags.StringVar(&c.emulated, "emulate", "", "let Kubernetes "+plane.DefaultMinor()+" have the APIs and feature gates of this older `MINOR`")
	flags.IntVar(&c.flagSettings.Parallel, "parallel", 0, "the number of runs at a time (default: two to eight for each processor, by the load, or one if the operator writes objects in no namespace)")
	flags.StringArrayVar(&c.binary.Install, "install", nil, "apply the objects in this `FILE` or folder before (repeatable; default: what the operator prints with crd, and the policies that it prints with manifests)")
	flags.StringVar(&c.binary.Account, "account", "", "give the operator the permissions of this ServiceAccount, `NAMESPACE/NAME`, which --install makes (default: those of an administrator)")
	flags.BoolVar(&c.binary.Cover, "cover", false,
		"count the statements of the operator that run, which costs time; PATH is a Go main package")
	flags.StringVar(&c.flagSettings.SampleFile, "sample", "", "the `FILE` of the samples (default: PATH/sample.yaml)")
	flags.StringVar(&c.flagSettings.ValuesFile, "values", "",
		"also try the values of the objects in this `FILE`, which have the kinds and names of the samples")
	flags.StringVar(&c.flagSettings.PairsFile, "pairs", "",
		"make one object of each pair with similar names of the objects in this `FILE`, which has their references too")
	flags.StringVar(&c.flagSettings.AcceptFile, "accept", "",
		"leave out the differences that this `FILE` lists as intended, with reasons")
	flags.StringVar(&c.flagSettings.ReportFile, "report", "",
		"write the findings to this `FILE`: a page if it ends in .html, else JSON")
	flags.StringVar(&c.flagSettings.ReplayFile, "replay", "", "make the runs of the findings in this JSON `FILE` again")
	flags.BoolVar(&c.isList, "list", false, "print the planned runs, and make the reference runs only")
	flags.BoolVarP(&c.isVerbose, "verbose", "v", false, "show each run, and the control plane's own log")
	return cmd
}

// execute starts a control plane, and explores the operator on it.
func (c *command) execute(ctx context.Context) error {
	if c.look != "" {
		c.flagSettings.LookOutside = func(ctx context.Context, namespace string) (string, error) {
			return runShell(ctx, c.look, namespace)
		}
	}
	if c.empty != "" {
		c.flagSettings.EmptyOutside = func(ctx context.Context, namespace string) error {
			_, err := runShell(ctx, c.empty, namespace)
			return err
		}
	}
	e, err := c.flagSettings.newExploration()
	if err != nil {
		return err
	}
	c.exploration = *e
	folder, err := os.MkdirTemp("", "yare-explore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := c.openBinary(ctx, folder); err != nil {
		return err
	}
	var log io.Writer
	if c.isVerbose {
		log = os.Stderr
	}
	p, err := plane.Start(ctx, plane.Options{
		Finder: plane.Finder{Kubernetes: c.kubernetes}, Emulate: c.emulated, Console: c.out, Title: "yare explore", Log: log,
	})
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
	if err := c.install(ctx, func(text string) { c.out.Printf("%s", text) }); err != nil {
		return err
	}
	c.settings.Progress = c.progress()
	if c.isList {
		return c.list(ctx)
	}
	record, err := c.run(ctx)
	err = errors.Join(err, c.writeReports(os.Stdout, record))
	return statusOf(record, err)
}

// openBinary opens the operator, and shows meanwhile how long its build took the last time.
func (c *command) openBinary(ctx context.Context, folder string) error {
	known, step, began := durations.Default(), "build for explore "+c.binary.Path, time.Now()
	if path, err := filepath.Abs(c.binary.Path); err == nil {
		step = "build for explore " + path
	}
	stop := known.Show(c.out, step, "building "+c.binary.Path)
	err := c.open(ctx, c.binary, folder)
	stop()
	if err == nil {
		known.Record(step, time.Since(began))
	}
	return err
}

// maxShellTime is how long a command about the external system may take.
const maxShellTime = time.Minute

// runShell runs a shell command about the external system for the run of a namespace, and returns what the command
// prints.
func runShell(ctx context.Context, command, namespace string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxShellTime,
		fmt.Errorf("the command did not end within %s", maxShellTime))
	defer cancel()
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(command, "{namespace}", namespace))
	var printed, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &printed, &problems
	if err := process.Run(ctx, cmd); err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, problems.String())
	}
	return printed.String(), nil
}

// list prints the planned runs.
func (c *command) list(ctx context.Context) error {
	all, err := engine.List(ctx, c.operator, c.settings)
	for _, line := range all {
		fmt.Println(line)
	}
	return err
}

// withStatus returns an error with an exit status: its own one, or the status of an operator that could not be
// explored.
func withStatus(err error) error {
	if _, has := errors.AsType[statusError](err); has || err == nil {
		return err
	}
	return statusError{statusNotExplored, err}
}

// statusOf returns the error with the exit status of an exploration, or nil. A finding wins over everything. failure is
// why the exploration could not go on, or nil.
func statusOf(r finding.Record, failure error) error {
	c := r.Coverage
	switch count := r.CountFailures(); {
	case count > 0 && failure != nil:
		return statusError{statusFound, fmt.Errorf("findings: %d, and the exploration could not go on: %w", count, failure)}
	case count > 0:
		return statusError{statusFound, fmt.Errorf("findings: %d", count)}
	case failure != nil:
		return statusError{statusNotExplored, failure}
	case c.Stopped != "":
		return statusError{statusIncomplete, errors.New("nothing was found: " + c.Stopped)}
	case c.ComparedSteps.Total > 0 && c.ComparedSteps.Done == 0:
		return statusError{
			statusNotExplored,
			errors.New("the runs without faults differ after each step, so that no state was compared: see the warnings"),
		}
	case len(c.NeverHappened) > 0:
		return statusError{
			statusIncomplete, fmt.Errorf("nothing was found, but kinds of faults never happened: %v", c.NeverHappened),
		}
	}
	return nil
}

// progressInterval is the time between two lines of progress, if not each run has a line.
const progressInterval = 10 * time.Second

// progress returns a function that prints the progress of an exploration: each run if that is asked for, else a
// line every ten seconds.
func (c *command) progress() func(engine.Progress) {
	var last time.Time
	return func(p engine.Progress) {
		isLast := p.Done == p.Total && p.Text != ""
		switch {
		case c.isVerbose && p.Text != "":
			c.out.Printf("%s: %s", describeProgress(p), p.Text)
		case time.Since(last) > progressInterval || isLast:
			last = time.Now()
			text := describeProgress(p)
			if p.Present != "" && !isLast {
				text += ", now " + p.Present
			}
			c.out.Printf("%s", text)
		}
	}
}

// describeProgress returns the counts of a progress, such as: run 12 of 75, findings: 0, about 40 s left.
func describeProgress(p engine.Progress) string {
	if p.Total == 0 {
		return "runs without faults"
	}
	text := fmt.Sprintf("run %d of %d, findings: %d", p.Done, p.Total, p.Findings)
	if p.Left >= time.Second {
		text += fmt.Sprintf(", about %s left", p.Left.Round(time.Second))
	}
	return text
}
