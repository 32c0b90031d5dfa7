package operator

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/uninstall"
)

// uninstallFlags are the flags of the command uninstall.
type uninstallFlags struct {
	deleteObjects, abandonCleanup, dryRun bool
}

// removeInstallation removes what the command manifests has printed for a program of that name from the
// cluster of the client.
func removeInstallation(ctx context.Context, out io.Writer, program string, o options, needs kube.Needs, newClient func() (*kube.Client, error)) error {
	flags := o.uninstall
	name, namespace, err := o.install.names(program)
	if err != nil {
		return err
	}
	if flags.abandonCleanup && !flags.deleteObjects {
		return errors.New("--abandon-cleanup goes with --delete-objects: the finalizers of objects that stay are not removed")
	}
	client, err := newClient()
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
		Installation: manifests.Installation{Program: program, Name: name, Namespace: namespace},
		Watched:      o.namespaces, Kinds: kinds, Finalizers: needs.Finalizers,
		DeleteObjects: flags.deleteObjects, AbandonCleanup: flags.abandonCleanup, DryRun: flags.dryRun, Out: out,
	})
}
