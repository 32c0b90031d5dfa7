package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/uninstall"
)

// uninstallFlags are the flags of the command uninstall.
type uninstallFlags struct {
	deleteObjects, abandonCleanup, removeFinalizers, dryRun, yes bool
	// timeout is zero for defaultTimeout.
	timeout time.Duration
}

// defaultTimeout is how long each wait of the command uninstall may take.
const defaultTimeout = 5 * time.Minute

// uninstaller runs the command uninstall.
type uninstaller struct {
	// program is the name of the program.
	program string
	client  *kube.Client
	// server names the server of the client for the user.
	server string
	// in is where the user answers. It is nil without an input.
	in  *os.File
	out io.Writer
	// hasWebhooks is true for a program with webhooks.
	hasWebhooks bool
}

// uninstall removes what the command manifests has printed for the program from the cluster.
func (u uninstaller) uninstall(ctx context.Context, o options, needs kube.Needs) error {
	flags := o.uninstall
	name, namespace, err := o.install.names(u.program)
	if err != nil {
		return err
	}
	if flags.abandonCleanup && !flags.deleteObjects {
		return errors.New("--abandon-cleanup goes with --delete-objects: --remove-finalizers is for the finalizers of objects that stay")
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
	return uninstall.Run(ctx, u.client, &uninstall.Options{
		Installation: manifests.Installation{Program: u.program, Name: name, Namespace: namespace},
		Watched:      o.namespaces, LeaseNamespace: o.election.namespace, LeaseName: o.election.name,
		Kinds: kinds, Reconciled: append(needs.Reconciles, kinds...), Finalizers: needs.Finalizers, HasWebhooks: u.hasWebhooks,
		DeleteObjects: flags.deleteObjects, AbandonCleanup: flags.abandonCleanup, RemoveFinalizers: flags.removeFinalizers, DryRun: flags.dryRun,
		Timeout: timeout, Out: u.out,
		Confirm: func(ctx context.Context) error {
			if flags.yes {
				return nil
			}
			return u.confirm(ctx, timeout)
		},
	})
}

// confirm returns an error unless the user types yes.
func (u uninstaller) confirm(ctx context.Context, timeout time.Duration) error {
	if !logctx.IsTerminal(u.in) {
		return errors.New("the standard input is no terminal, so nobody can confirm: give --yes")
	}
	fmt.Fprint(u.out, "type yes to go on: ")
	answer := make(chan string, 1)
	go func() { // a read of a terminal cannot be ended, except with the process
		line := make([]byte, 80)
		n, _ := u.in.Read(line) // without an answer there is no yes
		answer <- strings.TrimSpace(string(line[:n]))
	}()
	select {
	case text := <-answer:
		if text == "yes" {
			return nil
		}
		return errors.New("the answer is not yes")
	case <-time.After(timeout):
		return fmt.Errorf("there is no answer after %s", timeout)
	case <-ctx.Done():
		return ctx.Err()
	}
}
