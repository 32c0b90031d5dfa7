package controller

import (
	"slices"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// take turns a change into triggers.
func (e *engine[T]) take(id int, sub *subscription, change Change) {
	if change.Type == cache.Synced {
		close(sub.synced)
		return
	}
	if sub.source.isSelf() && change.Type == Deleted {
		// Also if a predicate keeps the round away that would find that it is gone.
		e.failures.forget(queue.Key{Namespace: change.Before.Namespace, Name: change.Before.Name}, change.Before.UID)
	}
	if !sub.source.isSelf() || !endsLife(change) {
		pass, err := sub.source.passes(change)
		if err != nil {
			e.reportSource(sub, change.Record(), err)
		}
		if !pass {
			return
		}
	}
	trigger := queue.Trigger{Priority: queue.High, Cause: causeOf(sub, change)}
	// Whoever deletes something waits for it, also if that was before the start.
	if change.Initial && !change.After.Deleting {
		trigger.Priority = queue.Low
	}
	var keys []owned
	if change.Type != Deleted {
		keys = e.keys(id, sub, change.AfterObject())
	}
	// A change may end what made the object matter, such as a label or an owner.
	if change.Type != Added && !sub.source.isSelf() {
		for _, k := range e.keys(id, sub, change.BeforeObject()) {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	} else if change.Type == Deleted {
		keys = e.keys(id, sub, change.BeforeObject())
	}
	triggers := make([]queue.Trigger, 0, len(keys))
	for _, k := range keys {
		if k.uid != "" && !e.mayBe(k) {
			continue // another has the owner's name
		}
		trigger.Key = k.Key
		triggers = append(triggers, trigger)
	}
	r := change.Record()
	for _, t := range e.echoes.classify(targetOf(sub.source.kind.Resource, kube.Key{Cluster: sub.stream.Cluster, Namespace: r.Namespace, Name: r.Name}), versionMade(change), triggers) {
		e.trigger(t)
	}
}

// endsLife reports whether an object has gone, or its deletion begins with c. Predicates
// decide which edits matter; they must not keep a cleanup from running.
func endsLife(c Change) bool {
	return c.Type == Deleted || c.After.Deleting && (c.Type == Added || !c.Before.Deleting)
}

// trigger passes on a trigger for an object that the controller may have.
func (e *engine[T]) trigger(t queue.Trigger) {
	if e.covers(t.Key) {
		e.queue.Add(t)
	}
}

// covers tells whether the streams of the reconciled kind can show an object of that key:
// a program that was narrowed to some namespaces has no business in others, whatever a
// function to names says.
func (e *engine[T]) covers(k queue.Key) bool {
	return k.Name != "" && slices.ContainsFunc(e.own, func(sub *subscription) bool { return sub.covers(k) })
}

func (s *subscription) covers(k queue.Key) bool {
	return s.stream.Namespace == "" && (k.Namespace != "" || s.stream.Resource.ClusterScoped) ||
		s.stream.Namespace != "" && s.stream.Namespace == k.Namespace
}

// stored is an object of the reconciled kind as its own stream has it.
func (e *engine[T]) stored(k queue.Key) (cache.Object, bool) {
	for _, sub := range e.own {
		if sub.covers(k) {
			return sub.open.Store().Get(kube.Key{Namespace: k.Namespace, Name: k.Name})
		}
	}
	return cache.Object{}, false
}

// mayBe tells whether the owner that a child names can be the one that there is. One that
// is not known is none, or will be: then a round is for nothing, but none is missed.
func (e *engine[T]) mayBe(k owned) bool {
	o, ok := e.stored(k.Key)
	return !ok || string(o.UID) == k.uid
}

// versionMade returns the version that a write has made if it led to the change.
func versionMade(c Change) objectVersion {
	if c.Type == Deleted {
		return objectVersion{uid: c.Before.UID}
	}
	return objectVersion{c.After.UID, c.After.ResourceVersion}
}

func causeOf(sub *subscription, change Change) queue.Cause {
	r := change.Record()
	c := queue.Cause{Kind: sub.source.kind.Resource.Kind, Namespace: r.Namespace, Name: r.Name}
	switch {
	case change.Initial:
		c.Change = "there at the start"
	case change.Type == Added:
		c.Change = "added"
	case change.Type == Deleted:
		c.Change = "deleted"
	default:
		c.Change = "modified"
	}
	return c
}
