// Package workers handles the keys of objects by several goroutines. A key whose handling has failed comes again with
// back-off.
package workers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// maxDelay is the longest wait before a key comes again after a failure.
const maxDelay = 5 * time.Second

// Workers are goroutines with a queue of keys. A key is with one worker at a time.
type Workers struct {
	// Count is the number of workers.
	Count int
	// Handle handles a key, and returns when the key is to come again: 0 for never.
	Handle func(ctx context.Context, key string) (again time.Duration, err error)
	// Failed reports a failure. A conflict is not reported: somebody else wrote the object.
	Failed func(ctx context.Context, key string, err error)

	queue workqueue.TypedRateLimitingInterface[string]
}

// Init makes the queue. firstDelay is the wait after the first failure of a key.
func (w *Workers) Init(firstDelay time.Duration) {
	w.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, maxDelay))
}

// Watch adds the key of each object that an informer reports, if isWanted returns true for the object. A nil isWanted
// wants all.
func (w *Workers) Watch(informer cache.SharedIndexInformer, isWanted func(object any) bool) error {
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil && (isWanted == nil || isWanted(object)) {
			w.queue.Add(key)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, updated any) { add(updated) }, DeleteFunc: add,
	})
	return err
}

// Run handles keys until the context ends.
func (w *Workers) Run(ctx context.Context) {
	var group sync.WaitGroup
	for range w.Count {
		group.Go(func() {
			for w.handleNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	group.Wait()
}

// handleNext handles one key, and reports whether there may be another.
func (w *Workers) handleNext(ctx context.Context) bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(key)
	again, err := w.Handle(ctx, key)
	switch {
	case err == nil:
		w.queue.Forget(key)
		if again > 0 {
			w.queue.AddAfter(key, again)
		}
	case ctx.Err() != nil:
	default:
		if !errors.IsConflict(err) {
			w.Failed(ctx, key, err)
		}
		w.queue.AddRateLimited(key)
	}
	return true
}
