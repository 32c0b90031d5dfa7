// Package dev is the loop behind `yare dev`: it builds an operator, starts a control plane,
// runs the operator against it, and repeats this whenever a source file is saved.
//
// What it decides, and why:
//
//   - A build that fails changes nothing: the operator of the last good build goes on. A mistake in a
//     type, which the operator reports instead of its CRDs, changes nothing either.
//   - CRDs are applied before the old operator is stopped, as a rollout would. A CRD that the server
//     refuses changes nothing either.
//   - The operator runs as a ServiceAccount with the permissions that it prints, and no others, as in a
//     cluster. The kubeconfig for other terminals has the rights of the administrator. The operator itself
//     refuses a request that it does not declare, with the line to add.
//   - The API server calls webhooks by an address that yare dev itself serves, and that stays the same for the
//     session. While the operator is restarted, kubectl waits for the answer of the next one: see webhookRelay. The
//     session has the address even if the operator has no webhook, because the address costs nothing, and the first webhook
//     may come with a save.
//   - An operator with the part of package livepage serves its page on a Unix socket. yare dev passes a browser on from an
//     address of the loopback interface that stays the same for the session: see livePage. The address is printed when
//     the page is there for the first time.
//   - The admission policies among the operator's manifests are applied after its CRDs. If the type check of the API
//     server finds a mistake in a policy, nothing changes.
//   - An operator that ends by itself with an error is started again, later each time (1 s
//     up to 30 s), as its Deployment would do. A save starts it at once. An operator that ends
//     with status 0 has nothing more to do, and is started again by the next save.
//   - The operator runs in the folder yare was called in, as `go run` would have it.
//   - What was removed from sample.yaml is not deleted from the cluster: the person at the
//     keyboard may want to see what becomes of it.
//   - A reconcile that changed something is one short line. Reconciles that changed nothing are
//     counted, because at work they are half of all. The other lines of the operator's log are
//     shown as they are on a terminal.
package dev

import (
	"context"
	"os"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
)

// Options are the settings of [Run].
type Options struct {
	// Dir is the folder of the operator, and Args are its arguments.
	Dir  string
	Args []string
	// Kubeconfig is the path of the file with the access to the cluster. Default: a file in a temporary folder.
	Kubeconfig string
	// Nodes is the number of simulated nodes. 0 is the default of the control plane.
	Nodes int
	// Kubernetes and Emulate are the versions of the control plane: see [plane.Options].
	Kubernetes, Emulate string
	// Verbose is true to show the log of the control plane too, and the log of the operator in full.
	Verbose bool
	// UntilReady is true to end when the samples are ready. Timeout is how long that may take.
	UntilReady bool
	Timeout    time.Duration
	// Yare is the command that calls yare from another terminal.
	Yare    string
	Console *console.Console
}

// Run runs the loop until ctx ends, and then returns nil, or until an error occurs that no saved
// file can repair. It leaves no process and no file.
func Run(ctx context.Context, o Options) error {
	t, err := findTarget(ctx, o.Dir)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	work, err := newWorkdir(os.TempDir())
	if err != nil {
		return err
	}
	defer work.remove()

	s := newSession(o, t, work.path)
	defer s.close()
	if err := s.begin(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	return unlessEnded(ctx, s.loop(ctx))
}

// unlessEnded returns err, or nil if ctx has ended, because err is a consequence of that end.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
