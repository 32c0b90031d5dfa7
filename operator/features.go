package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
)

// features are the features that the parts of a program bring: see package feature.
type features struct {
	program *feature.Program
	// all and declarations have the order of the packages in the table of names. Features that the table lacks come last.
	all          []feature.Feature
	declarations []feature.Declaration
}

// partsWithin returns parts, and after each of them the parts inside of it. A part such as that of [OnEveryReplica] has
// another part inside. nil parts are left out.
func partsWithin(parts []Part) (all []Part) {
	for _, part := range parts {
		for part != nil {
			all = append(all, part)
			wrapper, isWrapper := part.(interface{ Unwrap() Part })
			if !isWrapper {
				break
			}
			part = wrapper.Unwrap()
		}
	}
	return all
}

// newFeatureProgram returns what features know of a program. address is that of --listen, or empty.
func newFeatureProgram(name, command, address string) *feature.Program {
	return &feature.Program{
		Name: name, Command: command, Pages: feature.Pages{Address: address, Flag: "--listen"},
		IsDevelopment: command == "run" && os.Getenv(access.CheckVariable) != "",
	}
}

// newFeatures returns the features that parts bring. Parts that bring the same one bring it once.
func newFeatures(parts []Part, program *feature.Program) features {
	made := features{program: program}
	var packages []string
	for _, n := range feature.FlagNames() {
		if !slices.Contains(packages, n.Package) {
			packages = append(packages, n.Package)
		}
	}
	byPackage := make(map[string]feature.Feature)
	declarations := make(map[string]feature.Declaration)
	for _, part := range partsWithin(parts) {
		if bringer, ok := part.(feature.Bringer); ok {
			f := bringer.Feature()
			d := f.Declare(program)
			if !slices.Contains(packages, d.Package) { // a feature without a flag
				packages = append(packages, d.Package)
			}
			byPackage[d.Package], declarations[d.Package] = f, d
		}
	}
	for _, name := range packages {
		if f, ok := byPackage[name]; ok {
			made.all, made.declarations = append(made.all, f), append(made.declarations, declarations[name])
		}
	}
	return made
}

// flag returns a flag of the features. It reports whether one has the flag.
func (fs features) flag(name string) (feature.Flag, bool) {
	for _, d := range fs.declarations {
		if i := slices.IndexFunc(d.Flags, func(f feature.Flag) bool { return f.Name == name }); i >= 0 {
			return d.Flags[i], true
		}
	}
	return feature.Flag{}, false
}

// setFlags sets the flags that the command line gives, in their order, and checks them together. It returns the
// permissions that the flags need. A wrong value is a usageError.
func (fs features) setFlags(given []givenFlag) (needed []kube.Access, err error) {
	for _, g := range given {
		f, ok := fs.flag(g.name.Name)
		if !ok {
			return nil, g.name.MissingError(modulePath)
		}
		if err := f.Set(g.text); err != nil {
			return nil, usageError{fmt.Errorf("invalid value %q for flag -%s: %w", g.text, g.name.Name, err)}
		}
	}
	for _, d := range fs.declarations {
		access, err := d.Check()
		if err != nil {
			return nil, usageError{err}
		}
		needed = append(needed, access...)
	}
	return needed, nil
}

// help returns the flags for the help of a program.
func (fs features) help() (specs []flagSpec) {
	for _, n := range feature.FlagNames() {
		if f, ok := fs.flag(n.Name); ok {
			specs = append(specs, flagSpec{n.Name, n.Argument, f.Set, strings.Join(n.Commands, " "), f.Help})
		}
	}
	return specs
}

// install lets each feature add to what an installation has.
func (fs features) install(p *feature.Plan) error {
	var errs []error
	for _, f := range fs.all {
		errs = append(errs, f.Install(p))
	}
	return errors.Join(errs...)
}

// hasObserver reports whether a feature can observe reconciles.
func (fs features) hasObserver() bool {
	return slices.ContainsFunc(fs.all, func(f feature.Feature) bool { _, ok := f.(feature.Observer); return ok })
}

// observe returns the observer of the controllers, with next inside.
func (fs features) observe(next controller.Observer) controller.Observer {
	for _, f := range fs.all {
		if o, ok := f.(feature.Observer); ok {
			next = o.Observe(next)
		}
	}
	return next
}

// start starts all features, up to the first that fails.
func (fs features) start(ctx context.Context, h *feature.Host) error {
	for _, f := range fs.all {
		if err := f.Start(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// unreadyReasons returns why the features are not ready.
func (fs features) unreadyReasons() (reasons []string) {
	for _, f := range fs.all {
		reasons = append(reasons, f.UnreadyReasons()...)
	}
	return reasons
}

// end ends all features, the last one first.
func (fs features) end() {
	for _, f := range slices.Backward(fs.all) {
		f.End()
	}
}

// givenFlag is a flag of a feature that the command line has. The program has no parts yet when it reads the command
// line, because the parts depend on the program's own flags.
type givenFlag struct {
	name feature.FlagName
	text string
}

// flagRecorder is the value of one flag of a feature. It records what the command line has.
type flagRecorder struct {
	name  feature.FlagName
	given *[]givenFlag
}

// String returns the default: see [flag.Value].
func (g flagRecorder) String() string { return "" }

// Set records a value: see [flag.Value].
func (g flagRecorder) Set(text string) error {
	*g.given = append(*g.given, givenFlag{g.name, text})
	return nil
}

// IsBoolFlag reports whether the flag may stand without a value: see [flag.Value].
func (g flagRecorder) IsBoolFlag() bool { return g.name.Argument == "" }

// usageError is an error of whoever wrote the command line.
type usageError struct{ error }

// Unwrap returns what is wrong.
func (e usageError) Unwrap() error { return e.error }
