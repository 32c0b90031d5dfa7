package controller

import (
	"context"
	"sync"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// objectAccess reads and writes the objects of the reconciled kind. The methods return no object with an error.
type objectAccess interface {
	get(ctx context.Context, c *kube.Client, key kube.Key) (kube.Object, error)
	patch(ctx context.Context, c *kube.Client, key kube.Key, patch kube.Patch) (kube.Object, error)
	decode(c *kube.Client, object []byte) (kube.Object, error)
}

// typedAccess is the objectAccess to the objects of a Go type.
type typedAccess[T any] struct {
	// api has no client.
	api kube.API[T]
}

func (o typedAccess[T]) get(ctx context.Context, c *kube.Client, key kube.Key) (kube.Object, error) {
	return o.asObject(o.api.For(c, key.Namespace).Get(ctx, key.Name))
}

func (o typedAccess[T]) patch(
	ctx context.Context, c *kube.Client, key kube.Key, patch kube.Patch,
) (kube.Object, error) {
	return o.asObject(o.api.For(c, key.Namespace).Patch(ctx, key.Name, patch))
}

func (o typedAccess[T]) decode(c *kube.Client, object []byte) (kube.Object, error) {
	return o.asObject(o.api.For(c, "").Decode(object))
}

// asObject returns t as an object, or err.
func (o typedAccess[T]) asObject(t *T, err error) (kube.Object, error) {
	if err != nil {
		return nil, err
	}
	return o.api.Object(t), nil
}

// objectReader reads the object of a reconcile.
type objectReader struct {
	shownObjects shownObjects
	access       objectAccess
	// deselected is nil if the reconciled kind has no selectors.
	deselected *deselectedObjects
	// cachedClient reads from the cache, and liveClient from the server.
	cachedClient, liveClient *kube.Client

	// appendObject appends the JSON of an object in the cache: see [cache.View.AppendObject].
	appendObject func(dst []byte, ref wire.Ref, representation wire.Representation) ([]byte, bool)
	kind         kube.Type
	// buffers holds buffers for the JSON of objects, as *[]byte.
	buffers sync.Pool
}

// read returns the object of key. The object is at least as new as what triggered the
// reconcile, and as what former leaders have written: they may have cleaned up the object already, and no change would
// trigger another cleanup of what the reconcile makes. read returns no object if the selection is noObject or
// notShownYet, and none with an error.
func (r *objectReader) read(ctx context.Context, key kube.Key) (kube.Object, selection, error) {
	var stored cache.Object
	if r.deselected != nil {
		var isStored bool
		if stored, isStored = r.shownObjects.stored(key); !isStored {
			return r.deselected.read(ctx, key)
		}
	}
	c := r.cachedClient.InCluster(key.Cluster)
	isConfirmed := r.shownObjects.confirmTerm(ctx, key)
	if !isConfirmed {
		c = c.Live()
	} else if r.deselected == nil {
		if obj := r.readCached(c, key); obj != nil {
			return obj, selected, nil
		}
	}
	obj, err := r.access.get(ctx, c, key)
	if r.deselected != nil {
		// Another stream may have answered, and be behind the controller's own.
		switch {
		case kube.IsNotFound(err):
			obj, err = r.access.get(ctx, r.liveClient.InCluster(key.Cluster), key)
		case err == nil && ident.IsNewer(stored.ResourceVersion, obj.GetResourceVersion()):
			var object []byte
			if object, err = stored.Bytes(); err == nil {
				obj, err = r.access.decode(c, object)
			}
		case err == nil && !isConfirmed && obj.GetResourceVersion() != stored.ResourceVersion:
			// The former leader may have cleaned up the object because it does not match any more.
			isMatching, err := r.deselected.isMatching(ctx, key)
			if err != nil {
				return nil, noObject, err
			}
			if !isMatching {
				return r.deselected.read(ctx, key)
			}
		}
	}
	switch {
	case kube.IsNotFound(err),
		// the kind went with its objects
		kube.IsNoResource(err) && r.shownObjects.isKindUnserved(key.Cluster):
		return nil, noObject, nil
	case err != nil:
		return nil, noObject, err
	}
	return obj, selected, nil
}

// largestBuffer is how large a buffer may be to be used again, in bytes.
const largestBuffer = 64 << 10

// readCached returns the object of key, if the cache has it and it can be decoded. Otherwise it returns nil. It does what
// a get by cachedClient does. It makes no request, and the JSON of the object takes no new memory.
func (r *objectReader) readCached(c *kube.Client, key kube.Key) kube.Object {
	buffer, ok := r.buffers.Get().(*[]byte)
	if !ok {
		buffer = new([]byte)
	}
	ref := wire.Ref{Cluster: key.Cluster, Resource: r.kind.Resource, Namespace: key.Namespace, Name: key.Name}
	object, isKnown := r.appendObject((*buffer)[:0], ref, r.kind.Representation)
	if !isKnown {
		return nil
	}
	obj, err := r.access.decode(c, object)
	if *buffer = object; cap(object) <= largestBuffer {
		r.buffers.Put(buffer)
	}
	if err != nil {
		return nil // the get returns the error
	}
	return obj
}

// selection is whether there is an object to work on, and whether the selectors of [Reconciled] select it.
type selection int

const (
	// noObject means that there is no object to work on: it does not exist, it does not concern the controller, or it
	// could not be read.
	noObject selection = iota
	// notShownYet means that the object has begun to match the selectors again, and the stream of the controller is about
	// to show the object. The change leads to another reconcile.
	notShownYet
	// selected means that the object exists, and the controller reconciles it.
	selected
	// deselected means that the object exists and has the finalizer, but no longer matches the
	// selectors of [Reconciled].
	deselected
)
