package controller

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/yare-go/yare/controller/internal/mapping"
	"github.com/yare-go/yare/controller/internal/relation"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// mapper finds the objects that changes concern by slow relations, such as map functions. The mapper
// has its own goroutine. So neither the streams nor other controllers wait for map functions. The changes come from
// the map queue.
type mapper struct {
	log   *slog.Logger
	queue *mapQueue
	// reconciledKind is the reconciled kind, with the client of map functions.
	reconciledKind relation.ReconciledKind
	// waitSynced waits until all streams are synced, or ctx ends: see [subscriptions].
	waitSynced func(ctx context.Context) bool
	// trigger triggers the objects with these keys: see [dispatcher.triggerRelated].
	trigger func(sub *subscription, k kube.Key, b mapping.Batch, keys []relation.Key)
	// emit adds a trigger: see [enqueuer.emit]. The mapper adds triggers for all objects only.
	emit func(Trigger)
}

// run maps changes until ctx ends. It begins once all streams are synced, so that a map function
// finds what it reads. A map function that calls runtime.Goexit ends this goroutine; then another
// goroutine takes its place.
func (m *mapper) run(ctx context.Context, running *sync.WaitGroup) {
	var k mapping.Key[*subscription]
	var task mapping.Task
	isRunning := false
	defer func() {
		if isRunning {
			k.Subscription.logError(m.log, cache.Record{Namespace: k.Object.Namespace, Name: k.Object.Name}, errExited)
			m.queue.End(k, task, true)
			running.Go(func() { m.run(ctx, running) })
			return
		}
		m.queue.Stop()
	}()
	if !m.waitSynced(ctx) {
		return
	}
	for {
		if k, task, isRunning = m.queue.Begin(ctx); !isRunning {
			return
		}
		rest, hasFailed := m.mapTask(ctx, k, task)
		m.queue.End(k, rest, hasFailed)
	}
}

// mapTask triggers the objects that the changes of one watched object concern. It reports whether it has failed. Then
// rest is the part of the task that has to be tried once more. rest does not contain the present state, because the
// store has the present state at the next try.
func (m *mapper) mapTask(
	ctx context.Context, k mapping.Key[*subscription], task mapping.Task,
) (rest mapping.Task, hasFailed bool) {
	var keys []relation.Key
	var states []cache.Object
	if now, ok := k.Subscription.store().Get(k.Object); ok {
		states = append(states, now)
	}
	firstReplaced := len(states)
	rest.Changes = task.Changes
	for i, state := range append(states, task.Replaced...) {
		found, err := k.Subscription.relatedKeys(ctx, state.Record, state.Bytes, m.reconciledKind)
		for _, related := range found {
			if !slices.Contains(keys, related) {
				keys = append(keys, related)
			}
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return task, true // the end of the program, which is no fault of the map function
		}
		k.Subscription.logError(m.log, state.Record, err)
		if relation.IsLasting(err) {
			continue
		}
		hasFailed = true
		if i >= firstReplaced {
			rest.Replaced = append(rest.Replaced, state)
		}
	}
	m.trigger(k.Subscription, k.Object, task.Changes, keys)
	if hasFailed {
		rest.HasOverflowed = task.HasOverflowed
	} else if task.HasOverflowed {
		m.emit(Trigger{All: true, Cause: task.Changes.Cause.String()})
	}
	return rest, hasFailed
}

// newMapClient returns the client of map functions. covers reports whether the sources of the controller show all
// that a request reads. The client refuses other reads. It reads from the server only objects whose state is not
// certain after a write of the program.
func newMapClient(client *kube.Client, view *cache.View, covers func(*wire.Request) bool) *kube.Client {
	return client.With(func(server wire.Handler) wire.Handler {
		cached := view.Handler(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if !covers(r) {
				return nil, uncoveredRead(r)
			}
			return server.Do(ctx, r)
		}))
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Verb.IsWrite() {
				return nil, fmt.Errorf(
					"%s %s in a map function: a map function only finds out which objects a change concerns: write in the reconcile",
					r.Verb, r.Ref())
			}
			return cached.Do(ctx, r)
		})
	})
}

// uncoveredRead returns the error of a map function that reads what no source shows.
func uncoveredRead(r *wire.Request) error {
	option := fmt.Sprintf("controller.Owns or controller.Watches of the kind %s, without controller.Select",
		r.Resource.Kind)
	if r.Verb == wire.VerbList {
		option = "the selectors of a watch to the list, or " + option
	}
	if r.Resource.IsSecret() && r.Representation == wire.Full {
		option += " and with controller.KeepSecrets"
	}
	if r.Subresource != "" {
		return fmt.Errorf(
			"%s %s %s in a map function: a map function reads whole objects only: read the subresource in the reconcile",
			r.Verb, r.Ref(), r.Subresource)
	}
	if r.Live {
		return fmt.Errorf("%s %s in a map function: a map function reads from the cache only: read live in the reconcile",
			r.Verb, r.Ref())
	}
	what := r.Ref().String()
	if r.Name == "" {
		what = wire.Stream{Resource: r.Resource, Namespace: r.Namespace}.String()
	}
	return fmt.Errorf("%s %s in a map function: no source of the controller shows all that is read: add %s, or read it in the reconcile, where it is a request each time", r.Verb, what, option)
}
