package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/memory"
	"github.com/yare-go/yare/operator/internal/processors"
)

// invocation is one call of a [Program] by a command line. Apart from exit and the defaults of the process,
// such as its logger, it does not affect the process.
type invocation struct {
	Program
	// file is the name of the executable file, by which the user calls the program. It is the default of Name.
	file string
	// stdin is nil without an input.
	stdin          *os.File
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
	if i.Name == "" {
		i.Name = i.file
	} else if problems := validation.IsDNS1035Label(i.Name); len(problems) > 0 {
		return i.printError(fmt.Errorf("the field Name of operator.Program is %q: %s", i.Name, problems[0]))
	}
	line, err := newCommandLine(i.Name, i.Flags)
	if err != nil {
		return i.printError(err)
	}
	if err := line.parse(args); err != nil {
		return i.printUsageError(err)
	}
	switch line.command {
	case "help":
		_, needs, brought, err := i.makeParts(line)
		if err != nil {
			needs.Defines = nil // the help does without the kinds
		}
		writeHelp(i.stdout, i.file, line.builtInFlags(i.Name), brought, line.ownFlags, needs.Defines)
		return statusOK
	case "version":
		_, err = fmt.Fprintln(i.stdout, i.Name, versions())
	default:
		err = i.runCommand(ctx, line)
	}
	if usage := (usageError{}); errors.As(err, &usage) {
		return i.printUsageError(usage)
	}
	if err != nil {
		return i.printError(err)
	}
	return statusOK
}

// printUsageError prints what is wrong with the command line, and returns the exit status.
func (i invocation) printUsageError(err error) int {
	fmt.Fprintf(i.stderr, "%s: %v\nsee %s --help\n", i.file, err, i.file)
	return statusUsage
}

// printError prints err, and returns the exit status.
func (i invocation) printError(err error) int {
	fmt.Fprintf(i.stderr, "%s: %v\n", i.file, err)
	return statusFailed
}

// runCommand runs a command that needs the parts.
func (i invocation) runCommand(ctx context.Context, line *commandLine) error {
	parts, needs, brought, err := i.makeParts(line)
	if err != nil {
		return err
	}
	access, ignored, err := brought.setFlags(line.given)
	if err != nil {
		return err
	}
	if line.election.isOn {
		needs.Access = append(needs.Access, line.election.access(i.Name)...)
	}
	needs.Access = append(needs.Access, access...)
	switch line.command {
	case "crd":
		if line.comparison.With != "" {
			return i.compareDefinitions(ctx, line, ownDefinitions(needs))
		}
		p := definitionPrinter{program: i.Name, folder: line.definitionFolder, out: i.stdout, warnings: i.stderr}
		return p.print(ownDefinitions(needs))
	case "permissions":
		return printPermissions(i.stdout, i.Name, line.options, needs, parts)
	case "manifests":
		m := manifestPrinter{
			program: i.Name, out: i.stdout, notes: i.stderr, edit: i.Manifests, options: line.options, parts: parts,
			features: brought, needs: needs,
		}
		return m.print(ctx, func() (*kube.Client, error) {
			client, _, err := i.newAdminClient(line)
			return client, err
		})
	case "uninstall":
		client, server, err := i.newAdminClient(line)
		if err != nil {
			return err
		}
		u := uninstaller{program: i.Name, client: client, server: server, in: i.stdin, out: i.stdout, features: brought}
		return u.uninstall(ctx, line.options, needs)
	case "run":
		return i.runProgram(ctx, line, parts, brought, needs, ignored)
	default:
		return i.runFeatureCommand(ctx, line, brought)
	}
}

// compareDefinitions prints how the definitions of types differ from other ones: see [definitions.Comparison].
func (i invocation) compareDefinitions(ctx context.Context, line *commandLine, types []kube.Type) error {
	own, err := crd.From(types...)
	if err != nil {
		return err
	}
	c := line.comparison
	c.Program, c.Out, c.Stdin, c.Resource = i.Name, i.stdout, i.stdin, manifests.DefinitionResource()
	c.NewClient = func() (*kube.Client, error) {
		client, _, err := i.newAdminClient(line)
		return client, err
	}
	return c.Print(ctx, own)
}

// runFeatureCommand runs a command of a feature.
func (i invocation) runFeatureCommand(ctx context.Context, line *commandLine, brought features) error {
	command, err := brought.command(line.command)
	if err != nil {
		return err
	}
	name, namespace, err := line.install.names(i.Name)
	if err != nil {
		return err
	}
	client, server, err := i.newAdminClient(line)
	if err != nil {
		return err
	}
	return command.Run(ctx, &feature.CommandRun{
		Client: client, Server: server, Name: name, Namespace: namespace, IsDryRun: line.isDryRun,
		Confirm: prompt{in: i.stdin, out: i.stdout, isConfirmed: line.isConfirmed, timeout: defaultTimeout}.confirm,
		Out:     i.stdout, Log: slog.New(newLogHandler(i.stderr, line.verbosity)),
	})
}

// makeParts returns the parts, what they need, and the features that they bring.
func (i invocation) makeParts(line *commandLine) ([]Part, kube.Needs, features, error) {
	program := newFeatureProgram(i.Name, line)
	if i.Parts == nil {
		return nil, kube.Needs{}, features{program: program}, errors.New(
			"the field Parts of operator.Program is nil: set it to a function that returns the parts")
	}
	parts, err := i.Parts()
	if err != nil {
		return nil, kube.Needs{}, features{program: program}, err
	}
	needs, brought, err := checkParts(parts, program)
	return parts, needs, brought, err
}

// loadConfig returns the configuration of the client and its namespace.
func (i invocation) loadConfig(line *commandLine) (*kube.Config, string, error) {
	config, namespace, err := line.config.Load()
	if err == nil && i.Config != nil {
		err = i.Config(config)
	}
	return config, namespace, err
}

// newAdminClient returns a client for the commands that a user runs, with the user's rights. server names the server
// for the user.
func (i invocation) newAdminClient(line *commandLine) (client *kube.Client, server string, err error) {
	config, _, err := i.loadConfig(line)
	if err != nil {
		return nil, "", err
	}
	server = config.Host
	if config.Context != "" {
		server += " (context " + config.Context + ")"
	}
	config.OnWarning = func(context.Context, *wire.Request, string) {} // the user cannot change what the commands read
	client, err = kube.NewClient(config)
	return client, server, err
}

// runProgram runs the command run: it sets what belongs to the process, such as the log, and then runs the parts.
func (i invocation) runProgram(
	ctx context.Context, line *commandLine, parts []Part, brought features, needs kube.Needs, ignored []feature.Name,
) error {
	handler := i.Log
	var setVerbosity func(string) error
	if handler == nil {
		handler, setVerbosity = newLogHandler(i.stderr, line.verbosity), line.verbosity.Set
	}
	defer setDefaultLogger(handler)()
	log := withoutLogHandler(slog.New(handler))
	log.Info("starting", "program", i.Name, "version", programVersion(), "yare", yareVersion(), "go", runtime.Version())
	for _, n := range ignored {
		log.Warn(n.String()+" has no effect, because the program has no part that brings it",
			"do", "import "+modulePath+"/"+n.Package+" and add "+n.Part+" to its parts, or leave the flag out")
	}
	defer memory.Limit(log)()
	defer processors.Adapt()()
	firstSync := memory.BeginFirstSync()
	defer firstSync.End()
	if i.BeforeRun != nil {
		if err := i.BeforeRun(ctx); err != nil {
			return err
		}
	}
	config, namespace, err := i.loadConfig(line)
	if err != nil {
		return err
	}
	ctx, stopActivity := clock.ReportActivity(ctx, os.Getenv(clock.ActivityVariable))
	defer stopActivity()
	r := &programRunner{invocation: i, line: line, madeParts: parts, needs: needs, log: log, config: config}
	r.env.features, r.env.endFirstSync, r.env.setVerbosity = &brought, firstSync.End, setVerbosity
	return r.run(ctx, namespace)
}
