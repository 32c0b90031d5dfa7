package configpublishing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/operator/internal/calls/followed"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// keeper does the work of [Publisher.Run]. It is used by one goroutine.
type keeper struct {
	config Config
	// configurations are those of the Publisher, and known is what the keeper knows of each.
	configurations [2]*programConfiguration
	known          [2]*followed.Object[object]
	// namespace is the Namespace of the installation, and deployment is its Deployment. They are nil if there is none.
	namespace  *followed.Object[object]
	deployment *followed.Deployment
	// deploymentProblem is why the last read of the Deployment in update has failed. It is empty if the read has
	// succeeded.
	deploymentProblem string
	// isEnding is true from the end of the program on. Then the replica acts as one that does not lead.
	isEnding bool
	retry    followed.Retry
}

const (
	// endPeriod is the time between two reads of the Deployment while the program ends.
	endPeriod = 3 * time.Second
	// finishTime is how long the last look at the Deployment, and the removal of the entries, may take.
	finishTime = 5 * time.Second
)

func newKeeper(c Config, configurations [2]*programConfiguration) *keeper {
	k := &keeper{
		config: c, configurations: configurations, deployment: followed.NewDeployment(c.Replica, c.Namespace, c.Deployment),
	}
	for i, each := range configurations {
		k.known[i] = &followed.Object[object]{Reference: each.Reference}
	}
	if c.Namespace != "" {
		k.namespace = &followed.Object[object]{
			Reference: followed.ReferenceTo[object](manifests.NamespaceResource(), c.Namespace),
		}
	}
	return k
}

// run keeps the configurations until ctx ends, and then calls finish.
func (k *keeper) run(ctx context.Context) {
	k.follow(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	k.finish(ctx)
}

// follow keeps the configurations until ctx ends.
func (k *keeper) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	records := make(chan func()) // each records what a watch has shown
	all := k.known[:]
	if k.namespace != nil {
		all = append([]*followed.Object[object]{k.namespace}, all...)
	}
	for _, f := range all {
		watching.Go(func() { f.Follow(ctx, k.config.Replica, records) })
	}
	elected, reachable, ending := k.config.Elected, k.config.Reachable, k.config.Ending
	for {
		changed := k.config.Changed()
		due := k.retry.Next(k.update(ctx))
		if due == nil && k.isEnding && k.deployment.HasExisted() {
			due = time.After(endPeriod)
		}
		select {
		case record := <-records:
			record()
		case <-changed:
		case <-elected:
			elected = nil
		case <-reachable:
			reachable = nil
		case <-ending:
			ending, k.isEnding = nil, true
		case <-due:
		case <-ctx.Done():
			return
		}
	}
}

// finish removes the entries of the program, if its Deployment is gone. follow has ended, and may not have seen that
// the program ends.
func (k *keeper) finish(ctx context.Context) {
	if !k.deployment.HasExisted() {
		return
	}
	k.isEnding = true
	if err := k.deployment.Read(ctx); err != nil || !k.deployment.IsGone() {
		return // nobody knows that the Deployment is gone
	}
	for i, f := range k.known {
		f.NeedsRead = true // the watch has ended
		if err := k.correct(ctx, f, k.configurations[i]); err != nil {
			k.logProblem(f, err)
		}
	}
}

// update brings the configurations to the state that is due. It reports whether all are right.
func (k *keeper) update(ctx context.Context) bool {
	isRight := k.readDeployment(ctx)
	attempt := func(f *followed.Object[object], do func() error) {
		err := f.Attempt(do)
		if ctx.Err() == nil && f.RecordProblem(err) {
			k.logProblem(f, err)
		}
		isRight = isRight && (err == nil || isMissing(err)) // the watch shows when the configuration is made
	}
	if n := k.namespace; n != nil {
		attempt(n, func() error { return n.RefreshIfNeeded(ctx, k.config.Replica) })
	}
	for i, f := range k.known {
		attempt(f, func() error { return k.correct(ctx, f, k.configurations[i]) })
		k.configurations[i].recordLastKnown(f.LastKnown, k.config.Target)
		if f.NeedsRead {
			k.configurations[i].removed.forget()
		}
	}
	return isRight
}

// readDeployment reads the Deployment until a read is answered, and again while the program ends. It reports whether
// the last read was answered.
func (k *keeper) readDeployment(ctx context.Context) bool {
	read, problem := k.deployment.ReadOnce, ""
	if k.isEnding && k.deployment.HasExisted() {
		read = k.deployment.Read
	}
	err := read(ctx)
	if err != nil {
		problem = err.Error()
	}
	if ctx.Err() == nil && problem != k.deploymentProblem {
		k.deploymentProblem = problem
		if err != nil {
			k.config.Log.Warn(
				"cannot see whether the Deployment of the program exists: at the end of the program, its webhook entries stay",
				"error", err)
		}
	}
	return err == nil
}

// correct brings a configuration to the state that is due. If the leader cannot do all that it should do, it does what
// each replica does: a bundle must not wait for an entry that the server refuses.
func (k *keeper) correct(ctx context.Context, f *followed.Object[object], c *programConfiguration) error {
	if k.isEnding || !k.config.Leads() {
		return k.write(ctx, f, c, false)
	}
	err := k.write(ctx, f, c, true)
	if err != nil && !f.NeedsRead && ctx.Err() == nil {
		err = errors.Join(err, k.write(ctx, f, c, false))
	}
	return err
}

// write writes a configuration until the configuration has no differences from its plan.
func (k *keeper) write(ctx context.Context, f *followed.Object[object], c *programConfiguration, isLeader bool) error {
	client, hasRead := k.config.Replica, false
	if isLeader {
		client = k.config.Leader
	}
	for {
		if err := f.RefreshIfNeeded(ctx, k.config.Replica); err != nil {
			return err
		}
		if f.LastKnown == nil {
			return nil // the watch reads first
		}
		c.recordLastKnown(f.LastKnown, k.config.Target) // with the entries that are removed next
		wanted, err := k.plan(f.LastKnown, c, isLeader)
		if err != nil || len(wanted.differences) == 0 {
			return err
		}
		if (isLeader || k.isEnding && k.deployment.IsGone()) && !hasRead {
			if err := k.readInstallation(ctx); err != nil {
				return err
			}
			hasRead = true
			continue
		}
		if !f.LastKnown.exists() && k.config.Target.URL == "" {
			return newMissingError(f.Reference, k.config.Labels, k.deployment)
		}
		differences := strings.Join(wanted.differences, ", ")
		if !f.RecordWrite(time.Now()) {
			return fmt.Errorf("the %s is changed again and again, or the API server stores something else than was written: see its managedFields (%s)", f, differences)
		}
		var o followed.State[object]
		if f.LastKnown.exists() {
			o, err = patchConfiguration(ctx, f.Reference, client, f.LastKnown, wanted)
		} else {
			o, err = createConfiguration(ctx, f.Reference, client, k.config.Labels, wanted)
		}
		switch {
		case err == nil:
			f.Record(o)
			k.config.Log.Info("changed a webhook configuration", "kind", f.Resource.Kind, "name", f.Name, "changes", differences)
		case followed.IsOutdated(err):
			f.NeedsRead, hasRead = true, false
		default:
			return err
		}
	}
}

// readInstallation reads the Namespace and the Deployment. The watch of the Namespace may lag behind, and another
// replica may have removed the entries because one of both ends. A Deployment that no read has shown does not matter.
func (k *keeper) readInstallation(ctx context.Context) error {
	if k.namespace != nil {
		if err := k.namespace.Refresh(ctx, k.config.Replica); err != nil {
			return err
		}
	}
	if err := k.deployment.Read(ctx); k.deployment.HasExisted() {
		return err
	}
	return nil
}

// plan returns what a configuration should be. The leader leaves the entries of a configuration while it does not know
// the Namespace.
func (k *keeper) plan(current *object, c *programConfiguration, isLeader bool) (*plan, error) {
	n := k.namespace
	isKnown := n == nil || n.LastKnown != nil
	switch {
	case n != nil && isKnown && (!n.LastKnown.exists() || n.LastKnown.Metadata.DeletionTimestamp != ""):
		p := planWithoutEntries(current)
		if isLeader && !n.LastKnown.exists() && len(p.differences) == 0 {
			return nil, fmt.Errorf("the %s does not exist: its program publishes no webhooks", n)
		}
		return p, nil
	case k.isEnding && k.deployment.IsGone():
		return planWithoutEntriesFor(current, k.config.Target), nil
	case !isLeader || !isKnown:
		return planWithBundles(current, k.config.Target, k.config.BundleFor)
	}
	mayAdd := k.isReachable() && !k.deployment.IsGone()
	p, err := planWithEntries(current, c.entries, mayAdd, k.config.BundleFor)
	if err != nil {
		return nil, err
	}
	if !current.exists() && len(p.entries) == 0 {
		return newPlan(current), nil // the program does not need it, has no bundle yet, cannot be reached, or is removed
	}
	if n != nil {
		p.setOwner(n.LastKnown)
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

// logProblem logs a problem of an object, or its end.
func (k *keeper) logProblem(f *followed.Object[object], err error) {
	log := k.config.Log.With("kind", f.Resource.Kind, "name", f.Name)
	if err == nil {
		log.Info("an object that the webhooks need can be followed and changed again")
		return
	}
	if m := new(missingError); errors.As(err, &m) {
		log.Error(
			"a webhook configuration is missing, so API servers do not call its webhooks: only an installation makes it",
			"command", m.command)
		return
	}
	log.Error("cannot follow or change an object that the webhooks need; will try again", "error", err)
}
