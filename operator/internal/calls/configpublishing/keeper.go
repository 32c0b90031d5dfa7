package configpublishing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
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
	// deploymentProblem is why the last read of the Deployment in update has failed.
	deploymentProblem followed.Problem
	// hasForeign is true for a configuration in which others have expressions: see [hasForeignExpressions].
	hasForeign [2]bool
	// isEnding is true from the end of the program on. Then the replica acts as one that does not lead.
	isEnding bool
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
			Reference: followed.ReferenceTo[object](manifests.NamespaceResource(), kube.Key{Name: c.Namespace}),
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
	c, ignore := k.config, func(struct{}) {}
	loop := followed.Keeper{
		Sources: []followed.Source{
			followed.Values(c.Elected, ignore), followed.Values(c.Reachable, ignore),
			followed.Values(c.Ending, func(struct{}) { k.isEnding = true }),
		},
		Changed: c.Changed, Correct: k.update, MaxRetry: followed.MaxRetry,
	}
	if k.namespace != nil {
		loop.Sources = append(loop.Sources, k.namespace.Source(c.Replica))
	}
	for _, f := range k.known {
		loop.Sources = append(loop.Sources, f.Source(c.Replica))
	}
	loop.Run(ctx)
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

// update brings the configurations to the state that is due. It reports whether all are right, and returns the time
// until the next look at the Deployment while the program ends.
func (k *keeper) update(ctx context.Context) (areRight bool, wait time.Duration) {
	areRight = k.readDeployment(ctx) == nil
	attempt := func(f *followed.Object[object], do func(context.Context) error) {
		err := f.Attempt(ctx, do, func(err error) { k.logProblem(f, err) })
		areRight = areRight && (err == nil || isMissing(err)) // the watch shows when the configuration is made
	}
	if n := k.namespace; n != nil {
		attempt(n, func(ctx context.Context) error { return n.RefreshIfNeeded(ctx, k.config.Replica) })
	}
	for i, f := range k.known {
		attempt(f, func(ctx context.Context) error { return k.correct(ctx, f, k.configurations[i]) })
		k.configurations[i].recordLastKnown(f.LastKnown, k.config.Target)
		k.logForeign(i)
		if f.NeedsRead {
			k.configurations[i].removed.forget()
		}
	}
	if k.isEnding && k.deployment.HasExisted() {
		wait = endPeriod
	}
	return areRight, wait
}

// readDeployment reads the Deployment until a read is answered, and again while the program ends.
func (k *keeper) readDeployment(ctx context.Context) error {
	read := k.deployment.ReadOnce
	if k.isEnding && k.deployment.HasExisted() {
		read = k.deployment.Read
	}
	err := read(ctx)
	k.deploymentProblem.Record(ctx, err, func(err error) {
		if err != nil {
			k.config.Log.Warn(
				"cannot see whether the Deployment of the program exists: at the end of the program, its webhook entries stay",
				"error", err)
		}
	})
	return err
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
	changeOf := func(ctx context.Context, lastKnown *object) (none followed.Change[object], err error) {
		c.recordLastKnown(lastKnown, k.config.Target) // with the entries that are removed next
		wanted, err := k.plan(lastKnown, c, isLeader)
		if err == nil && len(wanted.differences) > 0 && !hasRead && (isLeader || k.isEnding && k.deployment.IsGone()) {
			if err = k.readInstallation(ctx); err == nil {
				hasRead = true
				wanted, err = k.plan(lastKnown, c, isLeader)
			}
		}
		if err != nil || len(wanted.differences) == 0 {
			return none, err
		}
		if !lastKnown.exists() && k.config.Target.URL == "" {
			return none, newMissingError(f.Reference, k.config.Labels, k.deployment)
		}
		differences := strings.Join(wanted.differences, ", ")
		return followed.Change[object]{Description: differences, Write: func() (o followed.State[object], err error) {
			if lastKnown.exists() {
				o, err = patchConfiguration(ctx, f.Reference, client, lastKnown, wanted)
			} else {
				o, err = createConfiguration(ctx, f.Reference, client, k.config.Labels, wanted)
			}
			if hasRead = err == nil; hasRead {
				k.logWrite(f, client.FieldManager(), wanted, lastKnown, o.Object)
			}
			return o, err
		}}, nil
	}
	return f.Correct(ctx, k.config.Replica, changeOf)
}

// logWrite logs a write, with the managers of the fields that it has set back, and reports these fields.
func (k *keeper) logWrite(f *followed.Object[object], own string, wanted *plan, before, after *object) {
	log := k.config.Log.With("kind", f.Resource.Kind, "name", f.Name, "changes", strings.Join(wanted.differences, ", "))
	fields := setBackFields(wanted.entries, before, after, own)
	if len(fields) > 0 {
		var texts []string
		for _, each := range fields {
			texts = append(texts, each.Path+" of "+each.Manager)
		}
		log = log.With("setBack", strings.Join(texts, ", "))
	}
	log.Info("changed a webhook configuration")
	if k.config.Contested != nil {
		k.config.Contested.Report(wire.Ref{Resource: f.Resource, Name: f.Name}, fields)
	}
}

// logForeign logs that others have added expressions to the selectors of a configuration, once until they are gone.
func (k *keeper) logForeign(i int) {
	f := k.known[i]
	if f.LastKnown == nil {
		return
	}
	var names []string
	for _, e := range f.LastKnown.Webhooks {
		if e.isFor(k.config.Target) && hasForeignExpressions(&e.fields) {
			names = append(names, e.fields.Name)
		}
	}
	if has := len(names) > 0; has != k.hasForeign[i] {
		k.hasForeign[i] = has
		if has {
			k.config.Log.Warn("others have excluded objects from webhooks of the program by selectors, which stay",
				"kind", f.Resource.Kind, "name", f.Name, "webhooks", strings.Join(names, ", "),
				"managers", strings.Join(f.LastKnown.otherManagers(k.config.Replica.FieldManager()), ", "))
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
