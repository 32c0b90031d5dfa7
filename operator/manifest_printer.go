package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// manifestFlags are the flags of the command manifests.
type manifestFlags struct {
	manifests.Choices
	kustomize string
	helm      string
	check     bool
	// withoutDefinitions leaves the definitions out of what is printed.
	withoutDefinitions bool
	// args are the flags of the program that the command line gives, for the Deployment.
	args []string
}

// addPolicyLabel adds a label, such as kubernetes.io/metadata.name=monitoring, to the NetworkPolicy.
func (f *manifestFlags) addPolicyLabel(text string) error {
	key, value, err := manifests.ParseLabel(text, "kubernetes.io/metadata.name=monitoring")
	if err != nil {
		return err
	}
	if f.PolicyLabels == nil {
		f.PolicyLabels = make(map[string]string)
	}
	f.PolicyLabels[key], f.NetworkPolicy = value, true
	return nil
}

// manifestPrinter runs the command manifests.
type manifestPrinter struct {
	// program is the name of the program.
	program string
	// out gets the manifests. notes gets lines for the user.
	out, notes io.Writer
	// edit is the field Manifests of [Program]. It may be nil.
	edit func(*Manifests) error
	// options are those of the command line.
	options options
	// parts are the parts of the program, and needs are those of all parts together.
	parts    []Part
	features features
	needs    kube.Needs
}

// print prints the objects that install the program, or writes them into files. newClient returns a client of
// the cluster.
func (p manifestPrinter) print(ctx context.Context, newClient func() (*kube.Client, error)) error {
	plan := installPlan{
		program: p.program, parts: p.parts, features: p.features, options: p.options, needs: p.needs, args: []string{"run"},
	}
	install, err := plan.complete()
	if err != nil {
		return err
	}
	var client *kube.Client // nil without --check
	if p.options.manifests.check {
		client, err = newClient()
		if err == nil {
			err = p.checkDefinitions(ctx, client, install)
		}
		if err != nil {
			return err
		}
	}
	p.printRisks(plan.brought.Notes)
	if p.options.manifests.helm != "" { // the names and the namespace of a release are not known
		return p.writeChart(ctx, client, install)
	}
	objects, err := p.objects(install)
	if err != nil {
		return err
	}
	if client != nil {
		if err := p.checkObjects(ctx, client, install, objects); err != nil {
			return err
		}
	}
	return p.writeObjects(install, objects)
}

// checkDefinitions returns an error if the server would refuse the definitions of the installation, or if an apply of
// the definitions would do harm.
func (p manifestPrinter) checkDefinitions(ctx context.Context, client *kube.Client, install *manifests.Options) error {
	return errors.Join(manifests.CheckPlurals(ctx, client, install.Definitions),
		manifests.CheckDefinitions(ctx, client, install.Definitions, p.program+" "+migrateCommand),
		p.features.checkDefinitions(ctx, client, install.Definitions))
}

// printRisks prints what may go wrong later with an installation by these flags. notes are those of the features.
func (p manifestPrinter) printRisks(notes []string) {
	if image := p.options.manifests.Image; image != "" && isMovingTag(image) {
		p.printNote("the image " + image + " may be another one tomorrow: name a version, or best the digest")
	}
	for _, note := range notes {
		p.printNote(note)
	}
}

// writeChart writes a chart for Helm. client is nil without --check.
func (p manifestPrinter) writeChart(ctx context.Context, client *kube.Client, install *manifests.Options) error {
	objects, err := p.objects(manifests.ForHelm(install))
	if err != nil {
		return err
	}
	if client != nil {
		manifests.PrintGrants(objects, ownGroups(p.needs), p.printNote)
		if err := manifests.CheckNamespaces(ctx, client, objects, install.Namespace); err != nil {
			return err
		}
	}
	return manifests.WriteChart(p.options.manifests.helm, install, objects)
}

// checkObjects returns an error if objects of the installation conflict with objects of the cluster. It prints what the
// user should know besides.
func (p manifestPrinter) checkObjects(
	ctx context.Context, client *kube.Client, install *manifests.Options, objects []map[string]any,
) error {
	c := manifests.Conflicts{
		Installation: install.Installation, Client: client, Groups: ownGroups(p.needs), Finalizers: p.needs.Finalizers,
		Watched: p.options.namespaces, PrintNote: p.printNote,
	}
	manifests.PrintGrants(objects, c.Groups, p.printNote)
	err := errors.Join(manifests.CheckNamespaces(ctx, client, objects, install.Namespace), c.Check(ctx, objects))
	if err != nil {
		return err
	}
	return p.features.checkObjects(ctx, client, p.printNote)
}

// writeObjects prints the objects, or writes them into a base for Kustomize.
func (p manifestPrinter) writeObjects(install *manifests.Options, objects []map[string]any) error {
	pruneCommand := install.AddObjectHashes(objects)
	if p.options.manifests.kustomize != "" {
		return manifests.WriteBase(p.options.manifests.kustomize, p.program, objects)
	}
	text, err := manifests.Documents(objects)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "# %s %s, for kubectl apply --server-side -f -\n# This command then deletes what an earlier version printed and this one does not:\n# %s\n"+
		"# To remove the program run %s uninstall: kubectl delete -f would delete the definitions with all objects, and end the program before its cleanups.\n%s",
		p.program, install.Version, pruneCommand, p.program, text)
	return err
}

// printNote prints a line for the user.
func (p manifestPrinter) printNote(text string) { fmt.Fprintf(p.notes, "%s: %s\n", p.program, text) }

// objects returns the objects of an installation as the author has changed them, with labels.
func (p manifestPrinter) objects(install *manifests.Options) ([]map[string]any, error) {
	objects, err := manifests.Objects(install)
	if err != nil {
		return nil, err
	}
	m := &Manifests{Objects: objects, Namespace: install.Namespace}
	err = p.addPolicies(m)
	if p.edit != nil && err == nil {
		err = p.edit(m)
	}
	install.AddLabels(m.Objects)
	return m.Objects, err
}

// addPolicies adds the admission policies that the parts bring.
func (p manifestPrinter) addPolicies(m *Manifests) error {
	for _, part := range feature.PartsWithin(p.parts) {
		bringer, ok := part.(feature.PolicyBringer)
		if !ok {
			continue
		}
		for _, object := range bringer.Policies(m.Namespace, p.options.namespaces) {
			kind, name := manifests.Kind(object), manifests.Name(object)
			if slices.ContainsFunc(m.Objects, func(o map[string]any) bool {
				return manifests.Kind(o) == kind && manifests.Name(o) == name
			}) {
				return fmt.Errorf("two parts bring the %s %s: give one another name", kind, name)
			}
			m.addBeforeDeployments(object)
		}
	}
	return nil
}

// isMovingTag reports whether an image may be another one tomorrow: it has the tag latest, or neither tag nor digest.
func isMovingTag(image string) bool {
	name := image[strings.LastIndex(image, "/")+1:]
	return strings.HasSuffix(name, ":latest") || !strings.ContainsAny(name, ":@")
}
