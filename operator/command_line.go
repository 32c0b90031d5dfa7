package operator

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/logctx"
)

// commandLine is the command line of a program.
type commandLine struct {
	options
	// program is the name of the program.
	program string
	// command is the name of the command.
	command string
	// ownFlags are the program's own flags.
	ownFlags []*flag.Flag
	// given are the flags of features that the command line has.
	given []givenFlag
}

// newCommandLine returns the command line of a program of that name. addOwnFlags adds the program's own flags.
// It may be nil.
func newCommandLine(program string, addOwnFlags func(*flag.FlagSet)) (*commandLine, error) {
	l := &commandLine{program: program}
	l.verbosity = new(logctx.Verbosity)
	l.manifests.Replicas = 2
	isBuiltIn := map[string]bool{"help": true, "h": true}
	for _, s := range l.builtInFlags(program) {
		// The other commands take a flag of the program after --: see parse.
		if s.isFor("run") || s.isFor("permissions") {
			isBuiltIn[s.name] = true
		}
	}
	for _, n := range feature.Names() {
		isBuiltIn[n.Name] = isBuiltIn[n.Name] || slices.Contains(n.Commands, "run")
	}
	var errs []error
	own := newFlagSet(program)
	if addOwnFlags != nil {
		addOwnFlags(own)
	}
	own.VisitAll(func(f *flag.Flag) {
		l.ownFlags = append(l.ownFlags, f)
		if isBuiltIn[f.Name] {
			errs = append(errs, fmt.Errorf("the flag --%s is built in: give the flag of the program another name", f.Name))
		}
	})
	return l, errors.Join(errs...)
}

// newFlagSet returns an empty set of flags that prints nothing.
func newFlagSet(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

// parse sets l to the command and the options in args.
//
// The commands manifests and uninstall, and those of features, have flags that the program can have too. Such a flag of
// the program stands after --. For example, a program has a flag --image of its own:
//
//	manifests --image i:1 --bucket b -- --image inner:2
//
// The image of the Deployment is i:1. The program gets --bucket=b and --image=inner:2.
func (l *commandLine) parse(args []string) error {
	l.command = "run"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		l.command, args = args[0], args[1:]
	}
	if l.command == "help" {
		return nil
	}
	if !slices.Contains(strings.Fields(everyCommand), l.command) && !isFeatureCommand(l.command) {
		return fmt.Errorf("unknown command %q: the help shows the commands of the program", l.command)
	}
	switch err := l.parseFlags(args); {
	case errors.Is(err, flag.ErrHelp):
		l.command = "help"
		return nil
	case err != nil:
		return err
	}
	if l.isVersion {
		l.command = "version"
	}
	return l.check(l.command)
}

// parseFlags sets the values of the flags in args.
func (l *commandLine) parseFlags(args []string) error {
	flags, shared := l.flagSets()
	if err := flags.Parse(args); err != nil {
		return err
	}
	rest := flags.Args()
	if hasOwnFlags(l.command) && len(rest) > 0 && len(rest) < len(args) && args[len(args)-len(rest)-1] == "--" {
		if err := shared.Parse(rest); err != nil {
			return err
		}
		rest = shared.Args()
	}
	if len(rest) > 0 {
		return fmt.Errorf("%s takes no argument %q", l.command, rest[0])
	}
	return nil
}

// isFeatureCommand reports whether a feature has a command of a name, whether the program imports the feature or not.
func isFeatureCommand(name string) bool {
	return slices.ContainsFunc(feature.Names(), func(n feature.Name) bool { return n.IsCommand && n.Name == name })
}

// hasOwnFlags reports whether a command has flags that run does not have.
func hasOwnFlags(command string) bool {
	return slices.Contains(strings.Fields(ownFlagCommands), command) || isFeatureCommand(command)
}

// flagSets returns two sets of flags. shared has the flags of run and those of the program. flags has the flags of the
// command and those of shared. If the command and shared have a flag of the same name, flags has that of the command.
func (l *commandLine) flagSets() (flags, shared *flag.FlagSet) {
	flags, shared = newFlagSet(l.program), newFlagSet(l.program)
	for _, s := range l.builtInFlags(l.program) {
		switch {
		case !s.isFor(l.command):
		case s.isFor("run"):
			s.addTo(shared)
		default:
			s.addTo(flags)
		}
	}
	for _, n := range feature.Names() {
		switch value := (flagRecorder{n, &l.given}); {
		case !slices.Contains(n.Commands, l.command):
		case slices.Contains(n.Commands, "run"):
			shared.Var(value, n.Name, "")
		default:
			flags.Var(value, n.Name, "")
		}
	}
	for _, f := range l.ownFlags {
		shared.Var(f.Value, f.Name, f.Usage)
	}
	shared.VisitAll(func(f *flag.Flag) {
		// The Deployment gets the flags that another process can use.
		if l.command == "manifests" && f.Name != "kubeconfig" && f.Name != "context" {
			f.Value = recordedValue{f.Value, f.Name, &l.manifests.args}
		}
		if flags.Lookup(f.Name) == nil {
			flags.Var(f.Value, f.Name, f.Usage)
		}
	})
	return flags, shared
}

// recordedValue is the value of a flag that also records how the flag is given.
type recordedValue struct {
	flag.Value
	name string
	args *[]string
}

// Set sets the value: see [flag.Value].
func (v recordedValue) Set(text string) error {
	if err := v.Value.Set(text); err != nil {
		return err
	}
	*v.args = append(*v.args, "--"+v.name+"="+text)
	return nil
}

// IsBoolFlag reports whether the flag may stand without a value: see [flag.Value].
func (v recordedValue) IsBoolFlag() bool {
	b, ok := v.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}
