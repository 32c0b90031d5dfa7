package publishing

import (
	"context"
	"errors"
	"fmt"
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
	// maxAttempts is how often a configuration is written in a row while others write it.
	maxAttempts = 5
)

// keeper does the work of [Publisher.Run]. It is used by one goroutine.
type keeper struct {
	*Publisher
	configurations [2]*followed
	// namespace is the Namespace of the installation. It is nil if there is none.
	namespace *followed
	// failures is the number of attempts in a row that have failed, and problem is the reason.
	failures int
	problem  string
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
	// watchError is the error of the watch, if the watch has shown nothing yet.
	watchError error
}

func newKeeper(p *Publisher) *keeper {
	k := &keeper{Publisher: p}
	for i, kind := range p.kinds {
		k.configurations[i] = &followed{objectClient: kind.objectClient}
	}
	if name := p.config.Namespace; name != "" {
		k.namespace = &followed{objectClient: newObjectClient(namespaces(), name)}
	}
	return k
}

// all returns what the keeper follows.
func (k *keeper) all() []*followed {
	all := k.configurations[:]
	if k.namespace != nil {
		all = append([]*followed{k.namespace}, all...)
	}
	return all
}

// run keeps the configurations until ctx ends.
func (k *keeper) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	records := make(chan func()) // each records what a watch has shown
	for _, f := range k.all() {
		watching.Go(func() {
			f.watch(ctx, k.config.Replica, func(o observation, err error) {
				select {
				case records <- func() { f.recordWatch(o, err) }:
				case <-ctx.Done():
				}
			})
		})
	}
	elected := k.config.Elected
	var due <-chan time.Time
	for {
		changed := k.config.Changed()
		if err := k.update(ctx); ctx.Err() == nil {
			due = k.recordAttempt(err)
		}
		select {
		case record := <-records:
			record()
		case <-changed:
		case <-elected:
			elected = nil
		case <-due:
		case <-ctx.Done():
			return
		}
	}
}

// recordAttempt records and logs how the last attempt has ended. It returns a channel that fires when the next attempt is
// due, or nil if none is due.
func (k *keeper) recordAttempt(err error) <-chan time.Time {
	if err == nil {
		if k.failures > 0 {
			k.config.Log.Info("the webhook configurations are right again", "name", k.config.Name)
		}
		k.failures, k.problem = 0, ""
		return nil
	}
	if text := err.Error(); text != k.problem {
		k.problem = text
		k.config.Log.Error("the webhook configurations cannot be kept; will try again", "name", k.config.Name, "error", err)
	}
	wait := min(minRetry<<min(k.failures, 10), maxRetry)
	k.failures++
	return time.After(wait/2 + rand.N(wait/2)) // replicas do not act at the same moment
}

// update brings the configurations to the state that is due.
func (k *keeper) update(ctx context.Context) error {
	var problems []error
	for _, f := range k.all() {
		problems = append(problems, f.watchError)
		f.watchError = nil
	}
	if n := k.namespace; n != nil && n.needsRead {
		problems = append(problems, n.refresh(ctx, k.config.Replica))
	}
	for i, f := range k.configurations {
		problems = append(problems, k.correct(ctx, f, k.kinds[i]))
		k.kinds[i].live.Store(f.live)
	}
	return errors.Join(problems...)
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

// write writes a configuration until there are no differences from its plan.
func (k *keeper) write(ctx context.Context, f *followed, kind *configurationKind, isLeader bool) error {
	client, hasRead := k.config.Replica, false
	if isLeader {
		client = k.config.Leader
	}
	var differences string
	for range maxAttempts {
		if f.needsRead {
			if err := f.refresh(ctx, k.config.Replica); err != nil {
				return err
			}
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
		differences = strings.Join(wanted.differences, ", ")
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
	return fmt.Errorf("the %s is changed again and again, or the API server stores something else than was written: see its managedFields (%s)", f, differences)
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
	p, err := withEntries(live, kind.entries, k.config.BundleFor)
	if err != nil {
		return nil, err
	}
	if !live.exists() && len(p.entries) == 0 {
		return newPlan(live), nil // the program does not need it, or has no bundle yet
	}
	if n != nil {
		p.setOwner(n.live)
	}
	return p, nil
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
