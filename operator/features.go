package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// features are the features that the parts of a program bring: see package feature.
type features struct {
	program *feature.Program
	// all has the order in which the table of names has the flags and commands of the features. Features that the table
	// lacks come last.
	all []declaredFeature
}

// declaredFeature is a feature with its declaration.
type declaredFeature struct {
	feature.Feature
	declaration feature.Declaration
}

// newFeatureProgram returns what features know of a program by its command line alone.
func newFeatureProgram(name string, line *commandLine) *feature.Program {
	isDevelopment := line.command == "run" && os.Getenv(access.CheckVariable) != ""
	return &feature.Program{
		Name: name, Command: line.command, Version: versions(), IsDevelopment: isDevelopment, IsStrict: isDevelopment,
		Watched: line.namespaces, Namespace: cmp.Or(line.install.namespace, installNamespaceOf(name)),
		Pages: feature.Pages{Address: line.listen.address, Flag: "--listen"},
	}
}

// newFeatures returns the features that parts bring, or what is wrong with the parts that bring them. needs are those
// of all parts together.
func newFeatures(parts []Part, needs kube.Needs, program *feature.Program) (features, error) {
	made := features{program: program}
	program.Needs = needs
	var bringers []feature.Bringer
	for _, part := range feature.PartsWithin(parts) {
		program.Parts = append(program.Parts, part)
		isSame := func(other feature.Bringer) bool {
			return other.FeatureName() == part.(feature.Bringer).FeatureName()
		}
		if bringer, ok := part.(feature.Bringer); ok && !slices.ContainsFunc(bringers, isSame) {
			bringers = append(bringers, bringer)
		}
	}
	var errs []error
	for _, bringer := range bringers {
		f := bringer.NewFeature()
		d, err := f.Declare(program)
		errs = append(errs, err, checkNames(bringer.FeatureName(), d))
		made.all = append(made.all, declaredFeature{f, d})
	}
	slices.SortStableFunc(made.all, func(a, b declaredFeature) int {
		return tablePosition(a.declaration) - tablePosition(b.declaration)
	})
	return made, errors.Join(errs...)
}

// checkNames returns an error if the table of names lacks a flag or a command of a feature.
func checkNames(name string, d feature.Declaration) error {
	var declared []string
	for _, f := range d.Flags {
		declared = append(declared, f.Name)
	}
	for _, c := range d.Commands {
		declared = append(declared, c.Name)
	}
	for _, each := range declared {
		if !slices.ContainsFunc(feature.Names(), func(n feature.Name) bool { return n.Name == each }) {
			return fmt.Errorf("the feature %s has the flag or command %s, which internal/feature/names.txt lacks: add a line",
				name, each)
		}
	}
	return nil
}

// checkParts returns what parts need and the features that they bring, or everything that is wrong with the parts.
func checkParts(parts []Part, program *feature.Program) (kube.Needs, features, error) {
	needs, err := needsOf(parts)
	brought, featuresErr := newFeatures(parts, needs, program)
	if err = errors.Join(err, featuresErr); err == nil { // the definitions of a part with an error are not known
		err = checkVersions(ownDefinitions(needs), brought.converted())
	}
	return needs, brought, err
}

// tablePosition returns where the table of names has the first flag or command of d.
func tablePosition(d feature.Declaration) int {
	names := feature.Names()
	for i, n := range names {
		if slices.ContainsFunc(d.Flags, func(f feature.Flag) bool { return f.Name == n.Name }) ||
			slices.ContainsFunc(d.Commands, func(c feature.Command) bool { return c.Name == n.Name }) {
			return i
		}
	}
	return len(names)
}

// converted returns the kinds whose objects API servers convert by calls to the program.
func (fs features) converted() map[schema.GroupKind]bool {
	kinds := make(map[schema.GroupKind]bool)
	for _, f := range fs.all {
		for _, gk := range f.declaration.Converted {
			kinds[gk] = true
		}
	}
	return kinds
}

// command returns a command of the features, or an error that names the part that brings the command.
func (fs features) command(name string) (feature.Command, error) {
	for _, f := range fs.all {
		if i := slices.IndexFunc(f.declaration.Commands, func(c feature.Command) bool { return c.Name == name }); i >= 0 {
			return f.declaration.Commands[i], nil
		}
	}
	for _, n := range feature.Names() {
		if n.IsCommand && n.Name == name {
			return feature.Command{}, n.MissingError(modulePath)
		}
	}
	return feature.Command{}, fmt.Errorf("there is no command %s", name)
}

// commands returns all commands of the features.
func (fs features) commands() (all []feature.Command) {
	for _, f := range fs.all {
		all = append(all, f.declaration.Commands...)
	}
	return all
}

// flag returns a flag of the features. It reports whether one has the flag.
func (fs features) flag(name string) (feature.Flag, bool) {
	for _, f := range fs.all {
		if i := slices.IndexFunc(f.declaration.Flags, func(f feature.Flag) bool { return f.Name == name }); i >= 0 {
			return f.declaration.Flags[i], true
		}
	}
	return feature.Flag{}, false
}

// setFlags sets the flags that the command line gives, in their order, and checks them together. It returns the
// permissions that the flags need, and the flags that it ignores, because the program has no part that brings them. A
// wrong value is a usageError.
func (fs features) setFlags(given []givenFlag) (needed []kube.Access, ignored []feature.Name, err error) {
	for _, g := range given {
		f, ok := fs.flag(g.name.Name)
		if !ok && g.name.IsIgnored {
			ignored = append(ignored, g.name)
			continue
		}
		if !ok {
			return nil, nil, g.name.MissingError(modulePath)
		}
		if err := f.Set(g.text); err != nil {
			return nil, nil, usageError{fmt.Errorf("invalid value %q for flag -%s: %w", g.text, g.name.Name, err)}
		}
	}
	for _, f := range fs.all {
		access, err := f.declaration.Check()
		if err != nil {
			return nil, nil, usageError{err}
		}
		needed = append(needed, access...)
	}
	return needed, ignored, nil
}

// help returns the flags for the help of a program.
func (fs features) help() (specs []flagSpec) {
	for _, n := range feature.Names() {
		if f, ok := fs.flag(n.Name); ok && !n.IsCommand {
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

// hasObserver reports whether a feature can observe reconciles, or a part joins the metrics.
func (fs features) hasObserver() bool {
	return slices.ContainsFunc(fs.all, func(f declaredFeature) bool { _, ok := f.Feature.(feature.Observer); return ok }) ||
		slices.ContainsFunc(fs.program.Parts, func(part any) bool { _, ok := part.(MetricsJoiner); return ok })
}

// observe returns the observer of the controllers, with next inside.
func (fs features) observe(next controller.Observer) controller.Observer {
	for _, f := range fs.all {
		if o, ok := f.Feature.(feature.Observer); ok {
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

// checkDefinitions lets the features look at the definitions of an installation: see [feature.Checker].
func (fs features) checkDefinitions(
	ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition,
) error {
	var errs []error
	for _, f := range fs.all {
		if c, ok := f.Feature.(feature.Checker); ok {
			errs = append(errs, c.CheckDefinitions(ctx, client, definitions))
		}
	}
	return errors.Join(errs...)
}

// checkObjects lets the features look at the other objects of an installation: see [feature.Checker].
func (fs features) checkObjects(ctx context.Context, client *kube.Client, printNote func(string)) error {
	var errs []error
	for _, f := range fs.all {
		if c, ok := f.Feature.(feature.Checker); ok {
			errs = append(errs, c.CheckObjects(ctx, client, printNote))
		}
	}
	return errors.Join(errs...)
}

// uninstall returns what the features leave behind: see [feature.Uninstaller]. name is that of the objects of the
// installation.
func (fs features) uninstall(name string) (before []wire.Resource, secretsAfter []string) {
	for _, f := range fs.all {
		if u, ok := f.Feature.(feature.Uninstaller); ok {
			before, secretsAfter = append(before, u.ResourcesBefore()...), append(secretsAfter, u.SecretsAfter(name)...)
		}
	}
	return before, secretsAfter
}

// givenFlag is a flag of a feature that the command line has. The program has no parts yet when it reads the command
// line, because the parts depend on the program's own flags.
type givenFlag struct {
	name feature.Name
	text string
}

// flagRecorder is the value of one flag of a feature. It records what the command line has.
type flagRecorder struct {
	name  feature.Name
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
