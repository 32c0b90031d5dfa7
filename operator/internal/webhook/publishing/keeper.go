package publishing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

const (
	minRetry = time.Second
	// maxRetry is below the 10 s within which a configuration must be right again.
	maxRetry = 5 * time.Second
	// maxWrites is how often a configuration is written within writeWindow. Another program may undo each write at once.
	// writeWindow and maxRetry together are 10 s.
	maxWrites   = 10
	writeWindow = 5 * time.Second
)

// keeper does the work of [Publisher.Run]. It is used by one goroutine.
type keeper struct {
	config Config
	kinds  [2]*configurationKind
	// configurations are the configurations of kinds.
	configurations [2]*followed
	// namespace is the Namespace of the installation. It is nil if there is none.
	namespace *followed
	// failures is the number of attempts in a row that have failed.
	failures int
}

// followed is an object that the keeper follows.
type followed struct {
	objectClient
	// live is the object as far as known. It is nil before the object was read.
	live *object
	// version is a resourceVersion at which the object was live.
	version string
	// needsRead is true if the object may have changed unseen.
	needsRead bool
	// watchError is the error of the watch since the last attempt, if the watch has shown nothing yet.
	watchError error
	// writesSince is the begin of the present writeWindow, and writes is the number of writes in it.
	writesSince time.Time
	writes      int
	// problem is why the last attempt has failed. It is empty if the attempt has succeeded.
	problem string
}

func newKeeper(c Config, kinds [2]*configurationKind) *keeper {
	k := &keeper{config: c, kinds: kinds}
	for i, kind := range kinds {
		k.configurations[i] = &followed{objectClient: kind.objectClient}
	}
	if c.Namespace != "" {
		k.namespace = &followed{objectClient: newObjectClient(namespaces(), c.Namespace)}
	}
	return k
}

// run keeps the configurations until ctx ends.
func (k *keeper) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	records := make(chan func()) // each records what a watch has shown
	all := k.configurations[:]
	if k.namespace != nil {
		all = append([]*followed{k.namespace}, all...)
	}
	for _, f := range all {
		watching.Go(func() {
			f.watch(ctx, k.config.Replica, func(o observation, err error) {
				select {
				case records <- func() { f.recordWatch(o, err) }:
				case <-ctx.Done():
				}
			})
		})
	}
	elected, reachable := k.config.Elected, k.config.Reachable
	var due <-chan time.Time
	for {
		changed := k.config.Changed()
		due = k.nextAttempt(k.update(ctx))
		select {
		case record := <-records:
			record()
		case <-changed:
		case <-elected:
			elected = nil
		case <-reachable:
			reachable = nil
		case <-due:
		case <-ctx.Done():
			return
		}
	}
}

// nextAttempt returns a channel that fires when the next attempt is due, or nil if none is due.
func (k *keeper) nextAttempt(isRight bool) <-chan time.Time {
	if isRight {
		k.failures = 0
		return nil
	}
	wait := min(minRetry<<min(k.failures, 10), maxRetry)
	k.failures++
	return time.After(wait/2 + rand.N(wait/2)) // replicas do not act at the same moment
}

// update brings the configurations to the state that is due. It reports whether all are right.
func (k *keeper) update(ctx context.Context) bool {
	isRight := true
	attempt := func(f *followed, do func() error) {
		err := errors.Join(f.watchError, do())
		f.watchError = nil
		if ctx.Err() == nil {
			f.recordAttempt(k.config.Log, err)
		}
		isRight = isRight && err == nil
	}
	if n := k.namespace; n != nil {
		attempt(n, func() error { return n.refreshIfNeeded(ctx, k.config.Replica) })
	}
	for i, f := range k.configurations {
		attempt(f, func() error { return k.correct(ctx, f, k.kinds[i]) })
		k.kinds[i].live.Store(f.live)
	}
	return isRight
}

// correct brings a configuration to the state that is due. If the leader cannot do all that it should do, it does what each
// replica does: a bundle must not wait for an entry that the server refuses.
func (k *keeper) correct(ctx context.Context, f *followed, kind *configurationKind) error {
	if !k.config.Leads() {
		return k.write(ctx, f, kind, false)
	}
	err := k.write(ctx, f, kind, true)
	if err != nil && !f.needsRead && ctx.Err() == nil {
		err = errors.Join(err, k.write(ctx, f, kind, false))
	}
	return err
}

// write writes a configuration until the configuration has no differences from its plan.
func (k *keeper) write(ctx context.Context, f *followed, kind *configurationKind, isLeader bool) error {
	client, hasRead := k.config.Replica, false
	if isLeader {
		client = k.config.Leader
	}
	for {
		if err := f.refreshIfNeeded(ctx, k.config.Replica); err != nil {
			return err
		}
		if f.live == nil {
			return nil // the watch reads first
		}
		wanted, err := k.plan(f.live, kind, isLeader)
		if err != nil || len(wanted.differences) == 0 {
			return err
		}
		if isLeader && k.namespace != nil && !hasRead {
			// The watch of the Namespace may lag behind: another replica may have removed the entries because the
			// Namespace ends.
			if err := k.namespace.refresh(ctx, k.config.Replica); err != nil {
				return err
			}
			hasRead = true
			continue
		}
		differences := strings.Join(wanted.differences, ", ")
		if f.recordWrite(time.Now()) > maxWrites {
			return fmt.Errorf("the %s is changed again and again, or the API server stores something else than was written: see its managedFields (%s)", f, differences)
		}
		var o observation
		if f.live.exists() {
			o, err = f.change(ctx, client, f.live, wanted)
		} else {
			o, err = f.create(ctx, client, k.config.Labels, wanted)
		}
		switch {
		case err == nil:
			f.record(o)
			k.config.Log.Info("changed a webhook configuration", "kind", f.stream.Resource.Kind, "name", f.name, "changes", differences)
		case isOutdated(err):
			f.needsRead = true
		default:
			return err
		}
	}
}

// plan returns what a configuration should be. The leader leaves the entries of a configuration while it does not know the
// Namespace.
func (k *keeper) plan(live *object, kind *configurationKind, isLeader bool) (*plan, error) {
	n := k.namespace
	isKnown := n == nil || n.live != nil
	switch {
	case n != nil && isKnown && (!n.live.exists() || n.live.Metadata.DeletionTimestamp != ""):
		p := withoutEntries(live)
		if isLeader && !n.live.exists() && len(p.differences) == 0 {
			return nil, fmt.Errorf("the %s does not exist: its program publishes no webhooks", n)
		}
		return p, nil
	case !isLeader || !isKnown:
		return withBundles(live, k.config.Target, k.config.BundleFor)
	}
	p, err := withEntries(live, kind.entries, k.isReachable(), k.config.BundleFor)
	if err != nil {
		return nil, err
	}
	if !live.exists() && len(p.entries) == 0 {
		return newPlan(live), nil // the program does not need it, or has no bundle yet, or cannot be reached
	}
	if n != nil {
		p.setOwner(n.live)
	}
	return p, nil
}

// isReachable reports whether API servers can reach this replica.
func (k *keeper) isReachable() bool {
	if k.config.Reachable == nil {
		return true
	}
	select {
	case <-k.config.Reachable:
		return true
	default:
		return false
	}
}

// recordWatch records what the watch has shown.
func (f *followed) recordWatch(o observation, err error) {
	switch {
	case err != nil:
		f.needsRead = true
		if f.live == nil {
			f.watchError = err
		}
	case f.live != nil && ident.IsNewer(f.version, o.version):
		f.needsRead = true // the watch lags behind, or the server was restored from a backup
	default:
		f.record(o)
	}
}

// recordWrite records a write. It returns the number of writes in the present writeWindow.
func (f *followed) recordWrite(now time.Time) int {
	if now.Sub(f.writesSince) >= writeWindow {
		f.writesSince, f.writes = now, 0
	}
	f.writes++
	return f.writes
}

// record records a state of the object.
func (f *followed) record(o observation) { f.live, f.version, f.needsRead = o.live, o.version, false }

// refresh reads the object.
func (f *followed) refresh(ctx context.Context, client *kube.Client) error {
	o, err := f.read(ctx, client)
	if err == nil {
		f.record(o)
	}
	return err
}

// refreshIfNeeded reads the object if it may have changed unseen.
func (f *followed) refreshIfNeeded(ctx context.Context, client *kube.Client) error {
	if !f.needsRead {
		return nil
	}
	return f.refresh(ctx, client)
}

// recordAttempt records how an attempt has ended. It logs a problem once in a row, and the end of a problem.
func (f *followed) recordAttempt(log *slog.Logger, err error) {
	log = log.With("kind", f.stream.Resource.Kind, "name", f.name)
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == f.problem:
	case err == nil:
		log.Info("an object that the webhooks need can be followed and changed again")
	default:
		log.Error("cannot follow or change an object that the webhooks need; will try again", "error", err)
	}
	f.problem = text
}
