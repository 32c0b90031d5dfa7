package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
)

// Main runs a program made of parts, and does not return. Its subcommands:
//
//	run   run all parts until a signal, or until one of them fails; the default
//	crd   print the CustomResourceDefinitions of all parts as YAML, except those that
//	      belong to another project (Foreign in the Definition)
//
// With --help it explains its flags. The exit status is 0 after SIGINT or SIGTERM, 1 after an
// error, and 2 if the command line is wrong. After a signal the parts may finish. A second
// signal ends the program at once.
func Main(parts ...Part) {
	p := program{name: programName(), parts: parts, stdout: os.Stdout, stderr: os.Stderr}
	ctx, stop := untilSignal(p.stderr)
	status := p.main(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// untilSignal returns a context that ends with the first SIGINT or SIGTERM, and a function that
// releases it. The second signal ends the process.
func untilSignal(stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			select {
			case <-signals:
			case <-done:
				return
			}
			if !first {
				fmt.Fprintln(stderr, "stopped at once, by a second signal")
				os.Exit(1)
			}
			cancel()
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done); cancel() }
}

// program is a main function without its process.
type program struct {
	name           string
	parts          []Part
	stdout, stderr io.Writer
}

const (
	statusOK     = 0
	statusFailed = 1
	statusUsage  = 2
)

// main runs the command line args, and returns the exit status.
func (p program) main(ctx context.Context, args []string) int {
	needs, err := needsOf(p.parts)
	if err != nil {
		return p.fail(err)
	}
	o, err := p.parse(args, needs)
	switch {
	case errors.Is(err, errHelp):
		return statusOK
	case err != nil:
		fmt.Fprintf(p.stderr, "%s: %v\nsee %s --help\n", p.name, err, p.name)
		return statusUsage
	}
	if o.command == "crd" {
		err = p.crd(needs)
	} else {
		err = p.run(ctx, o, needs)
	}
	if err != nil {
		return p.fail(err)
	}
	return statusOK
}

// fail prints err, and returns the exit status.
func (p program) fail(err error) int {
	fmt.Fprintf(p.stderr, "%s: %v\n", p.name, err)
	return statusFailed
}

// needsOf returns the needs of all parts together, or everything that is wrong with the parts.
func needsOf(parts []Part) (kube.Needs, error) {
	var all kube.Needs
	var errs []error
	for i, part := range parts {
		if part == nil {
			errs = append(errs, fmt.Errorf("the part %d of the program is nil", i+1))
			continue
		}
		needs, err := part.Needs()
		errs = append(errs, err)
		errs = append(errs, unique("two parts of the program are named %q: give one another controller.Name", all.Names, needs.Names))
		errs = append(errs, unique("two parts of the program apply as the field manager %q: give one another controller.FieldManager", all.FieldManagers, needs.FieldManagers))
		all.Names = append(all.Names, needs.Names...)
		all.FieldManagers = append(all.FieldManagers, needs.FieldManagers...)
		all.Defines = append(all.Defines, needs.Defines...)
		all.Access = append(all.Access, needs.Access...)
	}
	if len(parts) == 0 {
		errs = append(errs, errors.New("the program has no parts: give operator.Main at least one"))
	}
	return all, errors.Join(errs...)
}

// unique returns an error if one of names is taken.
func unique(format string, taken, names []string) error {
	for _, name := range names {
		if slices.Contains(taken, name) {
			return fmt.Errorf(format, name)
		}
	}
	return nil
}

// ownDefinitions returns the types in needs whose CustomResourceDefinition does not belong to
// another project.
func ownDefinitions(needs kube.Needs) []kube.Type {
	var own []kube.Type
	for _, t := range needs.Defines {
		if !t.Definition.Foreign {
			own = append(own, t)
		}
	}
	return own
}

// crd prints the CustomResourceDefinitions of the program.
func (p program) crd(needs kube.Needs) error {
	own := ownDefinitions(needs)
	if len(own) == 0 {
		_, err := fmt.Fprintf(p.stdout, "# %s has no CustomResourceDefinition of its own.\n", p.name)
		return err
	}
	crds, err := crd.From(own...)
	if err != nil {
		return err
	}
	return crd.WriteYAML(p.stdout, crds...)
}

// run runs the parts by the options of the command line.
func (p program) run(ctx context.Context, o options, needs kube.Needs) error {
	log := newLogger(p.stderr, o.verbose)
	restore := setDefaultLogger(log)
	defer restore()
	defer limitMemory(log)()
	config, _, err := o.config.Load()
	if err != nil {
		return err
	}
	client, err := kube.NewClient(config)
	if err != nil {
		return err
	}
	client = client.WithFieldManager(p.name)
	if len(o.namespaces) > 0 {
		client = client.InNamespaces(o.namespaces...)
	}
	connection := newConnectionReporter(log, config.Host, crdCommand(p.name), needs)
	var listener net.Listener
	if o.listen != "" {
		if listener, err = listen(ctx, o.listen); err != nil {
			return err
		}
		log.Info("serving health and metrics", "address", listener.Addr().String())
	}
	return run(ctx, client.With(connection.handler), environment{log, listener, connection}, p.parts)
}
