package operator

import (
	"context"
	"errors"
	"flag"
	"slices"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/uninstall"
)

// uninstallFlags are the flags of the command uninstall.
type uninstallFlags struct {
	deleteObjects, abandonCleanup, dryRun bool
}

const uninstallHelp = `
Flags of uninstall, beside --kubeconfig, --context and --watch-namespace:
  --namespace NAME, --name-prefix NAME
                      those of manifests
  --delete-objects    delete the objects of the program's kinds too, and wait for their cleanups
  --abandon-cleanup   do not wait: remove the finalizers of the program
  --dry-run           change nothing
`

// newUninstallFlags returns the flags of the command uninstall, and the flags that may stand after --.
func (l *commandLine) newUninstallFlags() (flags, after *flag.FlagSet) {
	flags = flag.NewFlagSet(l.name, flag.ContinueOnError)
	l.install.addTo(flags)
	flags.BoolVar(&l.uninstall.deleteObjects, "delete-objects", false, "")
	flags.BoolVar(&l.uninstall.abandonCleanup, "abandon-cleanup", false, "")
	flags.BoolVar(&l.uninstall.dryRun, "dry-run", false, "")
	return flags, l.shareFlags(flags, nil)
}

// removeInstallation removes what the command manifests has printed from the cluster.
func (p program) removeInstallation(ctx context.Context, line *commandLine, needs kube.Needs) error {
	flags := line.uninstall
	name, namespace, err := line.install.names(p.name)
	if err != nil {
		return err
	}
	if flags.abandonCleanup && !flags.deleteObjects {
		return errors.New("--abandon-cleanup goes with --delete-objects: the finalizers of objects that stay are not removed")
	}
	client, err := p.newAdminClient(line)
	if err != nil {
		return err
	}
	var kinds []kube.Resource
	for _, t := range ownDefinitions(needs) {
		same := func(r kube.Resource) bool { return r.GroupResource() == t.Resource.GroupResource() }
		if !t.Definition.NotServed && !slices.ContainsFunc(kinds, same) {
			kinds = append(kinds, t.Resource)
		}
	}
	return uninstall.Run(ctx, client, uninstall.Options{
		Program: p.name, Name: name, Namespace: namespace, Watched: line.namespaces, Kinds: kinds, Finalizers: needs.Finalizers,
		DeleteObjects: flags.deleteObjects, AbandonCleanup: flags.abandonCleanup, DryRun: flags.dryRun, Out: p.stdout,
	})
}
