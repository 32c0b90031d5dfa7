package controller

import (
	"context"
	"strconv"
	"sync"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller/internal/queue"
)

// remaps are the states of objects whose function to names failed: it is asked about them
// again, so that no trigger is lost. What an object was before a change, or before it was
// deleted, counts as much as what it is.
type remaps struct {
	// queue says when. The cluster of its keys is the number of the subscription.
	queue *queue.Queue

	mu     sync.Mutex
	states map[queue.Key][]cache.Object
}

// remapStates is how many states of one object are kept. More are there only if an object
// changes often while its function fails each time, which no retry mends.
const remapStates = 16

func newRemaps() *remaps {
	return &remaps{queue: queue.New(), states: make(map[queue.Key][]cache.Object)}
}

func (r *remaps) add(id int, o cache.Object) {
	k := queue.Key{Cluster: strconv.Itoa(id), Namespace: o.Namespace, Name: o.Name}
	r.keep(k, o)
	r.queue.Add(queue.Trigger{Key: k})
}

func (r *remaps) keep(k queue.Key, o cache.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	there := r.states[k]
	for _, other := range there {
		if other.UID == o.UID && other.ResourceVersion == o.ResourceVersion {
			return
		}
	}
	if len(there) == remapStates {
		there = there[1:]
	}
	r.states[k] = append(there, o)
}

func (r *remaps) take(k queue.Key) []cache.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	states := r.states[k]
	delete(r.states, k)
	return states
}

// remap asks the functions again that failed, until ctx ends.
func (e *engine[T]) remap(ctx context.Context) {
	for {
		item, ok := e.remaps.queue.Get(ctx)
		if !ok {
			return
		}
		var outcome queue.Outcome
		id, _ := strconv.Atoi(item.Key.Cluster)
		sub := e.subs[id]
		for _, o := range e.remaps.take(item.Key) {
			keys, err := sub.source.keys(e.runtime.Client, e.kind.Resource, o.Record, o.Bytes)
			for _, k := range keys {
				e.trigger(queue.Trigger{Key: k.Key, Priority: queue.High, Cause: queue.Cause{
					Change: "looked at again", Kind: sub.source.kind.Resource.Kind, Namespace: o.Namespace, Name: o.Name,
				}})
			}
			if isPanic(err) {
				e.reportSource(sub, o.Record, err)
				e.remaps.keep(item.Key, o)
				outcome = queue.Outcome{Failed: true, RetryAfter: DefaultBackoff(item.Attempt + 1)}
			}
		}
		e.remaps.queue.Done(item.Key, outcome)
	}
}

// keys are the objects that a state of an object concerns.
func (e *engine[T]) keys(id int, sub *subscription, o cache.Object) []owned {
	keys, err := sub.source.keys(e.runtime.Client, e.kind.Resource, o.Record, o.Bytes)
	if err == nil {
		return keys
	}
	e.reportSource(sub, o.Record, err)
	// What does not fit its type, or has no namespace, will be no better the next time.
	if isPanic(err) {
		e.remaps.add(id, o)
	}
	return keys
}
