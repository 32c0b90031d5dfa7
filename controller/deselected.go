package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// deselectedInterval is the time between two calls of the cleanup of an object that no longer matches the
// selectors of [Reconciled]. The streams of the controller show neither its changes nor its deletion.
const deselectedInterval = time.Minute

// deselectedObjects finds the objects that have a finalizer of the controller and no longer match the
// selectors of [Reconciled]. The controller still has to clean them up, and its own streams do not show them.
type deselectedObjects struct {
	own        ownObjects
	objects    objects
	finalizers *finalizers
	self       *watchedKind
	// server reads from the server, and narrowed does that in the namespaces of the reconciled kind.
	server, narrowed *kube.Client
	// cluster is the cluster of the objects.
	cluster string
}

// read returns the object of key if it is deselected. Otherwise the object is absent.
func (d *deselectedObjects) read(ctx context.Context, key kube.Key) (kube.Object, presence, error) {
	if d.finalizers.isEmpty() {
		return nil, absent, nil
	}
	c := d.server.InCluster(key.Cluster)
	obj, err := d.objects.get(ctx, c, key)
	switch {
	case kube.IsNotFound(err), kube.IsNoResource(err) && d.own.isKindUnserved(key.Cluster):
		return nil, absent, nil
	case err != nil:
		return nil, d.presenceOfMisfit(ctx, c, key, err), err
	case !d.finalizers.hasAny(obj.GetFinalizers()):
		return nil, absent, nil
	}
	// The object may match once more. Then its own stream is about to show it.
	matching, err := kube.Metadata(c, d.self.kind.Resource, key.Namespace).List(ctx, append(slices.Clone(d.self.selectors), kube.Field("metadata.name", key.Name))...)
	if err != nil || len(matching) > 0 {
		return nil, absent, err
	}
	return obj, deselected, nil
}

// presenceOfMisfit returns deselected for an object that cannot be decoded and has a finalizer of the controller.
// err is the error of the decoding, or another error.
func (d *deselectedObjects) presenceOfMisfit(ctx context.Context, c *kube.Client, key kube.Key, err error) presence {
	if _, isMisfit := errors.AsType[*wire.DecodeError](err); isMisfit {
		m, err := kube.Metadata(c, d.self.kind.Resource, key.Namespace).Get(ctx, key.Name)
		if err == nil && d.finalizers.hasAny(m.Finalizers) {
			return deselected
		}
	}
	return absent
}

// run emits a trigger for each object that stopped matching the selectors while the program was down.
func (d *deselectedObjects) run(ctx context.Context, emit func(Trigger)) error {
	for m, err := range kube.Metadata(d.narrowed, d.self.kind.Resource, "").Each(ctx) {
		if d.self.ifServed && kube.IsNoResource(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find objects that no longer match the selectors: %w", err)
		}
		k := kube.Key{Cluster: d.cluster, Namespace: m.Namespace, Name: m.Name}
		_, isStored := d.own.stored(k)
		if !isStored && d.finalizers.hasAny(m.Finalizers) {
			emit(Trigger{Key: k, Cause: "no longer selected"})
		}
	}
	return nil
}
