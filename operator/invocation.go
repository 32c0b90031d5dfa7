package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
)

// invocation is one call of a [Program] by a command line. Apart from exit and the defaults of the process,
// such as its logger, it does not affect the process.
type invocation struct {
	Program
	// name is the name of the program.
	name           string
	stdout, stderr io.Writer
	// exit ends the process at once.
	exit func(status int)
}

const (
	statusOK     = 0
	statusFailed = 1
	statusUsage  = 2
)

// execute runs the command line args, and returns the exit status.
func (i invocation) execute(ctx context.Context, args []string) int {
	line, err := newCommandLine(i.name, i.Flags)
	if err != nil {
		return i.fail(err)
	}
	if err := line.parse(args); err != nil {
		fmt.Fprintf(i.stderr, "%s: %v\nsee %s --help\n", i.name, err, i.name)
		return statusUsage
	}
	switch line.command {
	case "help":
		parts, needs, err := i.makeParts()
		if err != nil {
			needs.Defines = nil // the help does without the kinds
		}
		writeHelp(i.stdout, i.name, line.flags(i.name), line.ownFlags, parts, needs.Defines)
		return statusOK
	case "version":
		_, err = fmt.Fprintln(i.stdout, i.name, versions())
	default:
		err = i.runCommand(ctx, line)
	}
	if err != nil {
		return i.fail(err)
	}
	return statusOK
}

// fail prints err, and returns the exit status.
func (i invocation) fail(err error) int {
	fmt.Fprintf(i.stderr, "%s: %v\n", i.name, err)
	return statusFailed
}

// runCommand runs a command that needs the parts.
func (i invocation) runCommand(ctx context.Context, line *commandLine) error {
	parts, needs, err := i.makeParts()
	if err != nil {
		return err
	}
	if line.election.isOn {
		needs.Access = append(needs.Access, leaseAccess(i.name)...)
	}
	if line.listen.secureAddress != "" {
		if _, err := secureOpenerIn(parts); err != nil {
			return err
		}
		needs.Access = append(needs.Access, secureMetricsAccess()...)
	}
	switch line.command {
	case "crd":
		return printDefinitions(i.stdout, i.name, needs)
	case "permissions":
		return printPermissions(i.stdout, i.name, line.options, needs)
	case "manifests":
		m := manifestPrinter{program: i.name, out: i.stdout, edit: i.Manifests, flags: line.manifests}
		return m.print(ctx, line.options, needs, func() (*kube.Client, error) { return i.newAdminClient(line) })
	case "uninstall":
		return removeInstallation(ctx, i.stdout, i.name, line.options, needs, func() (*kube.Client, error) { return i.newAdminClient(line) })
	default:
		return i.runProgram(ctx, line, parts, needs)
	}
}

// makeParts returns the parts and what they need.
func (i invocation) makeParts() ([]Part, kube.Needs, error) {
	if i.Parts == nil {
		return nil, kube.Needs{}, errors.New("the field Parts of operator.Program is nil: set it to a function that returns the parts")
	}
	parts, err := i.Parts()
	if err != nil {
		return nil, kube.Needs{}, err
	}
	needs, err := needsOf(parts)
	return parts, needs, err
}

// loadConfig returns the configuration of the client and its namespace.
func (i invocation) loadConfig(line *commandLine) (*kube.Config, string, error) {
	config, namespace, err := line.config.Load()
	if err == nil && i.Config != nil {
		err = i.Config(config)
	}
	return config, namespace, err
}

// newAdminClient returns a client for the commands that a user runs, with the user's rights.
func (i invocation) newAdminClient(line *commandLine) (*kube.Client, error) {
	config, _, err := i.loadConfig(line)
	if err != nil {
		return nil, err
	}
	return kube.NewClient(config, kube.OnWarning(nil)) // the user cannot change what the commands read
}

// runProgram runs the parts by the options of the command line.
func (i invocation) runProgram(ctx context.Context, line *commandLine, parts []Part, needs kube.Needs) error {
	handler := i.Log
	if handler == nil {
		handler = newLogHandler(i.stderr, line.verbose)
	}
	defer setDefaultLogger(handler)()
	log := withoutScopes(slog.New(handler))
	defer limitMemory(log)()
	defer releaseMemory()()
	if i.BeforeRun != nil {
		if err := i.BeforeRun(ctx); err != nil {
			return err
		}
	}
	config, namespace, err := i.loadConfig(line)
	if err != nil {
		return err
	}
	var fence *lease.Fence
	if line.election.isOn {
		fence = newFence(line.election.timing, config)
	}
	client, err := newFencedClient(config, fence)
	if err != nil {
		return err
	}
	client = client.WithFieldManager(i.name)
	if len(line.namespaces) > 0 {
		client = client.InNamespaces(line.namespaces...)
	}
	namespace, pod := ownPod(namespace)
	problems := newProblemReporter(log, config.Host, ownCommand(i.name)+" crd", needs, access.NewChecker(needs, line.namespaces, namespace))
	listener, guard, err := line.listen.open(ctx, parts, config, problems, log)
	if err != nil {
		return err
	}
	env := environment{
		log: log, listener: listener, guard: guard, problems: problems, handlers: i.Handlers, metrics: i.Metrics, tracer: i.Tracer,
		namespace: namespace, pod: pod, isChecked: os.Getenv(access.CheckVariable) != "",
	}
	if fence == nil {
		return runParts(ctx, client, env, parts)
	}
	env.election, err = startElection(ctx, candidacy{
		fence: fence, program: i.name, namespace: namespace, pod: pod, watched: client.Namespaces(), log: log, problems: problems, exit: i.exit,
	})
	if err != nil {
		return err
	}
	// The lease is released after everything else, when nothing is left that could write.
	defer env.election.end()
	return runParts(ctx, client, env, parts)
}

// printDefinitions prints the CustomResourceDefinitions of a program.
func printDefinitions(w io.Writer, program string, needs kube.Needs) error {
	own := ownDefinitions(needs)
	if len(own) == 0 {
		_, err := fmt.Fprintf(w, "# %s has no CustomResourceDefinition of its own.\n", program)
		return err
	}
	crds, err := crd.From(own...)
	if err != nil {
		return err
	}
	return crd.WriteYAML(w, crds...)
}
