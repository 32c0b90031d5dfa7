package operator

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/problems"
)

// releaseTimeout is how long the release of the lease may take at the end of a program.
const releaseTimeout = 2 * time.Second

// lastLineTimeout is how long the log may take to write why the lease is lost. The process ends then at the latest.
const lastLineTimeout = time.Second

// leaderElection takes part in the election of the leader for this replica, and ends the process when its lease is
// lost.
type leaderElection struct {
	candidacy
	elector *lease.Elector
	// watchedClient sees the namespaces that the program watches.
	watchedClient *kube.Client
	// stop is nil before begin.
	stop    context.CancelFunc
	running sync.WaitGroup
	// stopLossWatch ends lossWatch, the goroutine that ends the process when the lease is lost.
	stopLossWatch context.CancelFunc
	lossWatch     sync.WaitGroup
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
	// program is the name of the program. leaseNamespace and leaseName identify the Lease. pod is the field of
	// [controller.Runtime].
	program, leaseNamespace, leaseName, pod string
	// kindsHash is the hash of the kinds that the program reconciles.
	kindsHash string
	// watched holds the namespaces that the program watches. None means all.
	watched  []string
	log      *slog.Logger
	problems *problems.Reporter
	// exit ends the process at once.
	exit func(status int)
}

// newElection returns the election of a program, which sends no request before begin.
func newElection(c candidacy) (*leaderElection, error) {
	// The elector decides itself when its requests are repeated.
	client := kube.NewClientFromHandler(c.fence.Transport()).WithFieldManager(c.program)
	watchedClient := client
	if len(c.watched) > 0 {
		watchedClient = client.InNamespaces(c.watched...)
	}
	elector, err := lease.New(lease.Config{
		Client: client.With(c.problems.Handler),
		Fence:  c.fence, Namespace: c.leaseNamespace, Name: c.leaseName, KindsHash: c.kindsHash, Identity: newIdentity(c.pod),
		Log: c.log, IsReported: c.problems.HasReported,
	})
	return &leaderElection{candidacy: c, elector: elector, watchedClient: watchedClient}, err
}

// begin makes the program a candidate for its Lease. When the lease is lost, the process ends within two seconds, even
// if the writer of the log blocks. So nothing that began in the term goes on after the term. A nil *leaderElection does
// nothing.
func (l *leaderElection) begin(ctx context.Context) {
	if l == nil {
		return
	}
	// The lease is renewed until all parts have ended, and so beyond the end of ctx.
	ctx = context.WithoutCancel(ctx)
	lossWatchCtx, stopLossWatch := context.WithCancel(ctx)
	ctx, cancel := context.WithCancel(ctx)
	l.stop, l.stopLossWatch = cancel, stopLossWatch
	l.running.Go(func() {
		select {
		case <-l.elector.Elected():
			l.warnOfOtherInstallations(ctx)
		case <-ctx.Done():
		}
	})
	ended := make(chan struct{})
	l.running.Go(func() {
		defer close(ended)
		if err := l.elector.Run(ctx); err != nil {
			l.log.Error("the program ends at once, so that nothing of its term goes on", "error", err)
		}
	})
	l.lossWatch.Go(func() {
		if !l.elector.WaitLost(lossWatchCtx) {
			return
		}
		select {
		case <-ended:
		case <-time.After(lastLineTimeout):
		}
		l.exit(statusFailed)
	})
}

// maxRenewalAge is how old the last renewal of another Lease may be, by the clocks of both machines, if its
// installation is taken for active. A warning too many does less harm than a second leader that nobody sees. The
// command uninstall waits for a renewal instead.
const maxRenewalAge = 2 * time.Minute

// warnOfOtherInstallations logs the other installations of the program in the namespaces that the program
// watches: the Leases of the same name in other namespaces, and the Leases of other names for the same kinds. Both
// installations lead, and both act on the same objects. An account that may not list these Leases has no warning.
func (l *leaderElection) warnOfOtherInstallations(ctx context.Context) {
	streams := []wire.Stream{lease.StreamNamed(l.leaseName)}
	if l.kindsHash != "" {
		streams = append(streams, lease.StreamOfKinds(l.kindsHash))
	}
	for i, s := range streams {
		leases, err := lease.List(ctx, l.watchedClient, s)
		if err != nil {
			l.log.Debug("cannot see whether there is another installation of this program", "error", err)
		}
		for _, other := range leases {
			m := &other.Metadata
			isOwnName := m.Name == l.leaseName
			if !lease.HasRenewedHolder(other, time.Now().Add(-maxRenewalAge)) ||
				isOwnName && (i > 0 || m.Namespace == l.leaseNamespace) {
				continue
			}
			text := "another installation of this program is active: both act on the objects that both watch; remove one of them, or give each --watch-namespace"
			if !isOwnName {
				text = "a program with a Lease of another name is active for the same kinds: if both are the same program, both act on the objects that both watch; remove one of them, or give both the same --lease-name and --lease-namespace"
			}
			l.log.Warn(text, "lease", m.Namespace+"/"+m.Name, "holder", lease.Holder(other))
		}
	}
}

// kindsHashOf returns a hash of the kinds that a program reconciles, or an empty text if it reconciles none.
func kindsHashOf(kinds []wire.Resource) string {
	if len(kinds) == 0 {
		return ""
	}
	var names []string
	for _, r := range kinds {
		names = append(names, r.String())
	}
	slices.Sort(names)
	return fmt.Sprintf("%.10x", sha256.Sum256([]byte(strings.Join(slices.Compact(names), " "))))
}

// end releases the lease, if this replica leads. All parts have ended. lossWatch goes on until the release, because
// the log may block here too.
func (l *leaderElection) end() {
	if l.stop == nil {
		return
	}
	defer l.lossWatch.Wait()
	defer l.stopLossWatch()
	l.stop()
	l.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := l.elector.Release(ctx); err != nil {
		l.log.Warn("the lease is left to expire", "error", err)
	}
}

// unreadyReason returns why the replica is not ready, or an empty text. A standby is ready when it has read the Lease.
func (l *leaderElection) unreadyReason() string {
	switch {
	case l.isLost():
		return fmt.Sprintf("the lease %s is lost: the program ends", l.elector)
	case !l.elector.HasSeen():
		return fmt.Sprintf("the lease %s has not been read", l.elector)
	}
	return ""
}

// firstAttemptTimeout is how long the streams of a program wait for the first attempt to take the lease.
const firstAttemptTimeout = 2 * time.Second

// waitForFirstAttempt waits until the replica has tried to take the lease, firstAttemptTimeout at most. Where nobody
// led, the streams that are opened afterwards are not behind the term, so that no object has to be confirmed by the
// server.
func (l *leaderElection) waitForFirstAttempt(ctx context.Context) {
	if l == nil {
		return
	}
	timeout := time.NewTimer(firstAttemptTimeout)
	defer timeout.Stop()
	select {
	case <-l.elector.Attempted():
	case <-timeout.C:
	case <-ctx.Done():
	}
}

// isLost reports whether the replica has lost its lease, so that the program must end. It returns false for a nil
// *leaderElection.
func (l *leaderElection) isLost() bool { return l != nil && l.elector.IsLost() }

// isLeading reports whether the replica leads at this moment. Without an election each replica does.
func (l *leaderElection) isLeading() bool { return l == nil || l.elector.IsLeading() }

// leadershipText returns whether the replica leads, in words. It returns an empty text without an election.
func (l *leaderElection) leadershipText() string {
	switch {
	case l == nil:
		return ""
	case l.isLost():
		return "has lost the lease"
	case l.isLeading():
		return "leads"
	}
	return "stands by"
}

// timedOutWrites returns the number of writes that the fence has ended.
func (l *leaderElection) timedOutWrites() float64 {
	if l == nil {
		return 0
	}
	return float64(l.fence.TimedOutWrites())
}

// newIdentity returns the identity of this process in the Lease: the name of its Pod, or of its host, and a
// random text. No other process has this identity.
func newIdentity(pod string) string {
	host, _ := os.Hostname() // the random text is enough
	return cmp.Or(pod, host) + "_" + rand.Text()
}

// leaseAccess returns the permissions that the leader election with a Lease of this name needs. An empty namespace is
// that of the program. RBAC cannot restrict create to names.
func leaseAccess(name, namespace string) []kube.Access {
	leases, isOwn := lease.Resource(), namespace == ""
	var namespaces []string
	if !isOwn {
		namespaces = []string{namespace}
	}
	return []kube.Access{
		// for the warning of another installation
		{Resource: leases, Verbs: []wire.Verb{wire.VerbList}, Names: []string{name}},
		{Resource: leases, Verbs: []wire.Verb{wire.VerbCreate}, OwnNamespace: isOwn, Namespaces: namespaces},
		{
			Resource: leases, Verbs: []wire.Verb{wire.VerbGet, wire.VerbList, wire.VerbWatch, wire.VerbUpdate},
			Names: []string{name}, OwnNamespace: isOwn, Namespaces: namespaces,
		},
	}
}
