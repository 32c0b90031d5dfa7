// Package workers brings objects up to date, by their keys, in several goroutines. A key whose sync has failed is tried
// again with back-off.
package workers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// maxDelay is the longest wait before a key is tried again after a failure.
const maxDelay = 5 * time.Second

// Workers are goroutines with a queue of keys. A key is with one worker at a time.
type Workers struct {
	// Count is the number of workers.
	Count int
	// Sync brings the object of a key up to date. It returns after which time it wants the key again, or 0 for never.
	Sync func(ctx context.Context, key string) (requeueAfter time.Duration, err error)
	// Report reports a failure of Sync. It is not called for a conflict, because somebody else wrote the object.
	Report func(ctx context.Context, key string, err error)

	queue workqueue.TypedRateLimitingInterface[string]
}

// Init makes the queue. firstDelay is the wait after the first failure of a key.
func (w *Workers) Init(firstDelay time.Duration) {
	w.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, maxDelay))
}

// Watch adds the key of each object that an informer reports, if isWanted returns true for the object. A nil isWanted
// wants all.
func (w *Workers) Watch(informer cache.SharedIndexInformer, isWanted func(object any) bool) error {
	add := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err == nil && (isWanted == nil || isWanted(object)) {
			w.queue.Add(key)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, updated any) { add(updated) }, DeleteFunc: add,
	})
	return err
}

// Run syncs keys until the context ends.
func (w *Workers) Run(ctx context.Context) {
	var group sync.WaitGroup
	for range w.Count {
		group.Go(func() {
			for w.syncNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	group.Wait()
}

// syncNext syncs one key. It returns false when there are no more keys.
func (w *Workers) syncNext(ctx context.Context) bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(key)
	requeueAfter, err := w.Sync(ctx, key)
	switch {
	case err == nil:
		w.queue.Forget(key)
		if requeueAfter > 0 {
			w.queue.AddAfter(key, requeueAfter)
		}
	case ctx.Err() != nil:
	default:
		if !errors.IsConflict(err) {
			w.Report(ctx, key, err)
		}
		w.queue.AddRateLimited(key)
	}
	return true
}
