package operator

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
)

// releaseTimeout is how long the release of the lease may take at the end of a program.
const releaseTimeout = 2 * time.Second

// lastLineTimeout is how long the log may take to write why the lease is lost. The process ends then at the latest.
const lastLineTimeout = time.Second

// leaderElection is the part of a program in the election of its leader.
type leaderElection struct {
	fence   *lease.Fence
	elector *lease.Elector
	log     *slog.Logger
	stop    context.CancelFunc
	running sync.WaitGroup
	// stopGuard ends the guard, which ends the process when the lease is lost.
	stopGuard context.CancelFunc
	guarding  sync.WaitGroup
}

// newFence returns the fence of a program with leader election, and puts it below the connections of config.
// The handler of the fence belongs above the transport: see [newFencedClient]. The zero timing stands for
// lease.DefaultTiming.
func newFence(timing lease.Timing, config *kube.Config) *lease.Fence {
	if timing.Duration == 0 {
		timing = lease.DefaultTiming()
	}
	fence := lease.NewFence(lease.SystemClock(), timing)
	config.Dial = fence.Dialer(config.Dial)
	return fence
}

// candidacy is what a program needs to take part in the election of its leader.
type candidacy struct {
	fence *lease.Fence
	// program is the name of the program. namespace and pod are the fields of [controller.Runtime].
	program, namespace, pod string
	// watched holds the namespaces that the program watches. None means all.
	watched  []string
	log      *slog.Logger
	problems *problemReporter
	// exit ends the process at once.
	exit func(status int)
}

// startElection makes the program a candidate for the Lease of its name in its namespace. When the lease is
// lost, the process ends within two seconds, even if the writer of the log blocks: whatever began in the term ends
// with it.
func startElection(ctx context.Context, c candidacy) (*leaderElection, error) {
	// The elector decides itself when its requests are repeated.
	client := kube.NewClientFromHandler(c.fence.Transport()).WithFieldManager(c.program)
	all := client
	if len(c.watched) > 0 {
		all = client.InNamespaces(c.watched...)
	}
	elector, err := lease.New(lease.Config{
		Client: client.With(c.problems.handler),
		Fence:  c.fence, Namespace: c.namespace, Name: c.program, Identity: newIdentity(c.pod),
		Log: c.log, IsReported: c.problems.hasReported,
	})
	if err != nil {
		return nil, err
	}
	// The lease is renewed until all parts have ended, and so beyond the end of ctx.
	ctx = context.WithoutCancel(ctx)
	guardCtx, stopGuard := context.WithCancel(ctx)
	ctx, cancel := context.WithCancel(ctx)
	l := &leaderElection{fence: c.fence, elector: elector, log: c.log, stop: cancel, stopGuard: stopGuard}
	l.running.Go(func() {
		select {
		case <-elector.Elected():
			l.warnOfOtherInstalls(ctx, all, c.namespace, c.program)
		case <-ctx.Done():
		}
	})
	hasEnded := make(chan struct{})
	l.running.Go(func() {
		defer close(hasEnded)
		if err := elector.Run(ctx); err != nil {
			c.log.Error("the program ends at once, so that nothing of its term goes on", "error", err)
		}
	})
	l.guarding.Go(func() {
		if !elector.WaitLost(guardCtx) {
			return
		}
		select {
		case <-hasEnded:
		case <-time.After(lastLineTimeout):
		}
		c.exit(statusFailed)
	})
	return l, nil
}

// recentRenewal is how old the last renewal of the lease of another install may be for the install to
// be active, by the clocks of both machines.
const recentRenewal = 2 * time.Minute

// warnOfOtherInstalls logs the other installs of the program in the namespaces that the program
// watches: the Leases of the same name in other namespaces. Both installs lead, and both act on the
// same objects. An account that may not list these Leases has no warning.
func (l *leaderElection) warnOfOtherInstalls(ctx context.Context, c *kube.Client, own, name string) {
	leases, err := lease.List(ctx, c, name)
	if err != nil {
		l.log.Debug("cannot see whether there is another install of this program", "error", err)
		return
	}
	for _, other := range leases {
		if other.Metadata.Namespace != own && lease.IsHeld(other, time.Now().Add(-recentRenewal)) {
			l.log.Warn("another install of this program is active: both act on the objects that both watch; remove one of them, or give each --watch-namespace",
				"lease", other.Metadata.Namespace+"/"+name, "holder", lease.Holder(other))
		}
	}
}

// end releases the lease, if this replica leads. All parts have ended. The guard stays until the release, because
// the log may block here too.
func (l *leaderElection) end() {
	defer l.guarding.Wait()
	defer l.stopGuard()
	l.stop()
	l.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := l.elector.Release(ctx); err != nil {
		l.log.Warn("the lease is left to expire", "error", err)
	}
}

// missing returns why the replica is not ready, or nothing. A standby is ready when it has read the Lease.
func (l *leaderElection) missing() string {
	switch {
	case l.isLost():
		return fmt.Sprintf("the lease %s is lost: the program ends", l.elector)
	case !l.elector.HasSeen():
		return fmt.Sprintf("the lease %s has not been read", l.elector)
	}
	return ""
}

// isLost reports whether the replica has lost its lease, so that the program must end. A nil *leaderElection has
// nothing to lose.
func (l *leaderElection) isLost() bool { return l != nil && l.elector.IsLost() }

// leads reports whether the replica leads at this moment. Without an election each replica does.
func (l *leaderElection) leads() bool { return l == nil || l.elector.Leads() }

// endedWrites returns the number of writes that the fence has ended.
func (l *leaderElection) endedWrites() float64 {
	if l == nil {
		return 0
	}
	return float64(l.fence.EndedWrites())
}

// newIdentity returns the identity of this process in the Lease: the name of its Pod, or of its host, and a
// random text. No other process has this identity.
func newIdentity(pod string) string {
	host, _ := os.Hostname() // the random text is enough
	return cmp.Or(pod, host) + "_" + rand.Text()
}

// leaseAccess returns the permissions that the leader election of a program of this name needs. RBAC cannot
// restrict create to names.
func leaseAccess(name string) []kube.Access {
	leases := lease.Resource()
	return []kube.Access{
		// for the warning of another install
		{Resource: leases, Verbs: []kube.Verb{kube.VerbList}, Names: []string{name}},
		{Resource: leases, Verbs: []kube.Verb{kube.VerbCreate}, OwnNamespace: true},
		{Resource: leases, Verbs: []kube.Verb{kube.VerbGet, kube.VerbList, kube.VerbWatch, kube.VerbUpdate}, Names: []string{name}, OwnNamespace: true},
	}
}
