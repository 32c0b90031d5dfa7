package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/uninstall"
)

// migrateCommand is the command of a feature that stores all objects in one version, before nobody converts them.
const migrateCommand = "migrate"

// uninstallFlags are the flags of the command uninstall.
type uninstallFlags struct {
	deleteObjects, abandonCleanup, removeFinalizers bool
	// timeout is zero for defaultTimeout.
	timeout time.Duration
}

// uninstaller runs the command uninstall.
type uninstaller struct {
	// program is the name of the program.
	program string
	client  *kube.Client
	// server names the server of the client for the user.
	server string
	// in is where the user answers. It is nil without an input.
	in       *os.File
	out      io.Writer
	features features
}

// uninstall removes what the command manifests has printed for the program from the cluster.
func (u uninstaller) uninstall(ctx context.Context, o options, needs kube.Needs) error {
	flags := o.uninstall
	name, namespace, err := o.install.names(u.program)
	if err != nil {
		return err
	}
	if flags.abandonCleanup && !flags.deleteObjects {
		return errors.New(
			"--abandon-cleanup goes with --delete-objects: --remove-finalizers is for the finalizers of objects that stay")
	}
	var kinds []wire.Resource
	for _, t := range ownDefinitions(needs) {
		same := func(r wire.Resource) bool { return r.GroupResource() == t.Resource.GroupResource() }
		if !t.Definition.NotServed && !slices.ContainsFunc(kinds, same) {
			kinds = append(kinds, t.Resource)
		}
	}
	fmt.Fprintf(u.out, "uninstalls %s in the namespace %s of the cluster %s\n", name, namespace, u.server)
	timeout := cmp.Or(flags.timeout, defaultTimeout)
	confirm := prompt{in: u.in, out: u.out, isConfirmed: o.isConfirmed, timeout: timeout}.confirm
	before, secretsAfter := u.features.uninstall(name)
	return uninstall.Run(ctx, u.client, &uninstall.Options{
		Installation: manifests.Installation{Program: u.program, Name: name, Namespace: namespace},
		Watched:      o.namespaces, LeaseNamespace: o.election.namespace, LeaseName: o.election.name,
		Kinds: kinds, Reconciled: append(needs.Reconciles, kinds...),
		Finalizers: needs.Finalizers, ResourcesBefore: before, SecretsAfter: secretsAfter,
		DeleteObjects: flags.deleteObjects, AbandonCleanup: flags.abandonCleanup, RemoveFinalizers: flags.removeFinalizers,
		DryRun:  o.isDryRun,
		Timeout: timeout, Out: u.out,
		Migrate: func(ctx context.Context) error {
			command, err := u.features.command(migrateCommand)
			if err != nil {
				return err
			}
			return command.Run(ctx, &feature.CommandRun{
				Client: u.client, Server: u.server, Name: name, Namespace: namespace, IsDryRun: o.isDryRun,
				Confirm: confirm, Out: u.out, Log: slog.New(slog.DiscardHandler),
			})
		},
		Confirm: confirm,
	})
}
