package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// errDeletionBegun is the cause of the end of a reconcile's context: see [CancelDeleted].
var errDeletionBegun = errors.New("the object is being deleted")

// cancelRegistry holds the running reconciles that the deletion of their object ends: see [CancelDeleted].
type cancelRegistry struct {
	mu    sync.Mutex
	byKey map[kube.Key]cancelable
}

// cancelable is a running reconcile.
type cancelable struct {
	uid    types.UID
	cancel context.CancelCauseFunc
}

func newCancelRegistry() *cancelRegistry {
	return &cancelRegistry{byKey: make(map[kube.Key]cancelable)}
}

// add returns the context of a reconcile of the object k, which ends when the deletion of the object
// begins. remove must be called after the reconcile.
func (c *cancelRegistry) add(ctx context.Context, k kube.Key, uid types.UID) (_ context.Context, remove func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKey[k] = cancelable{uid, cancel}
	return ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.byKey, k)
		cancel(nil)
	}
}

// cancel ends the context of the reconcile of the object k, if one is running. It is called when the deletion of the
// object has begun.
func (c *cancelRegistry) cancel(k kube.Key, uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if running, ok := c.byKey[k]; ok && running.uid == uid {
		running.cancel(errDeletionBegun)
	}
}
