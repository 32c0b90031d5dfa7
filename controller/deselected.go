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
	shownObjects shownObjects
	access       objectAccess
	finalizers   *finalizers
	reconciled   *watchedKind
	// liveClient reads from the server. narrowedClient does so in the namespaces where the reconciled kind is watched.
	liveClient, narrowedClient *kube.Client
	// cluster is the cluster of the objects.
	cluster string
	// repaired receives a signal after each repair: see [doubtRepair]. After a restoration the server may have objects
	// with a finalizer that the controller had removed.
	repaired signal
}

// read returns the object of key and deselected if the object has a finalizer of the controller and no longer
// matches the selectors. If the object has the finalizer and matches the selectors again, read returns no object and
// notShownYet. If the object has the finalizer and cannot be decoded, read returns no object, deselected and the error.
// In all other cases read returns no object and noObject, also if the object exists.
func (d *deselectedObjects) read(ctx context.Context, key kube.Key) (kube.Object, selection, error) {
	if d.finalizers.isEmpty() {
		return nil, noObject, nil
	}
	c := d.liveClient.InCluster(key.Cluster)
	obj, err := d.access.get(ctx, c, key)
	switch {
	case kube.IsNotFound(err), kube.IsNoResource(err) && d.shownObjects.isKindUnserved(key.Cluster):
		return nil, noObject, nil
	case err != nil:
		return nil, d.selectionOfUndecodable(ctx, c, key, err), err
	case !d.finalizers.hasAny(obj.GetFinalizers()):
		return nil, noObject, nil
	}
	// The object may match once more. Then its own stream is about to show it.
	switch isMatching, err := d.isMatching(ctx, key); {
	case err != nil:
		return nil, noObject, err
	case isMatching:
		return nil, notShownYet, nil
	}
	return obj, deselected, nil
}

// isMatching returns whether the server has an object of key that matches the selectors.
func (d *deselectedObjects) isMatching(ctx context.Context, key kube.Key) (bool, error) {
	c := d.liveClient.InCluster(key.Cluster)
	matching, err := kube.Metadata(c, d.reconciled.kind.Resource, key.Namespace).List(ctx,
		append(slices.Clone(d.reconciled.selectors), kube.Field("metadata.name", key.Name))...)
	return len(matching) > 0, err
}

// selectionOfUndecodable returns deselected if err is the error of an object that cannot be decoded and has a finalizer
// of the controller. Otherwise it returns noObject. err is the error of the read of the object.
func (d *deselectedObjects) selectionOfUndecodable(
	ctx context.Context, c *kube.Client, key kube.Key, err error,
) selection {
	if _, isUndecodable := errors.AsType[*wire.DecodeError](err); isUndecodable {
		m, err := kube.Metadata(c, d.reconciled.kind.Resource, key.Namespace).Get(ctx, key.Name)
		if err == nil && d.finalizers.hasAny(m.Finalizers) {
			return deselected
		}
	}
	return noObject
}

// run emits a trigger for each object that has a finalizer of the controller and does not match the selectors: at the
// start, because the object may have stopped matching while the program was down, and after each restoration of the
// server.
func (d *deselectedObjects) run(ctx context.Context, emit func(Trigger)) error {
	for {
		if err := d.emitAll(ctx, emit); err != nil {
			return err
		}
		select {
		case <-d.repaired:
		case <-ctx.Done():
			return nil
		}
	}
}

// emitAll emits a trigger for each object that has a finalizer of the controller and does not match the selectors.
func (d *deselectedObjects) emitAll(ctx context.Context, emit func(Trigger)) error {
	for m, err := range kube.Metadata(d.narrowedClient, d.reconciled.kind.Resource, "").Each(ctx) {
		if d.reconciled.ifServed && kube.IsNoResource(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find objects that no longer match the selectors: %w", err)
		}
		k := kube.Key{Cluster: d.cluster, Namespace: m.Namespace, Name: m.Name}
		_, isStored := d.shownObjects.stored(k)
		if !isStored && d.finalizers.hasAny(m.Finalizers) {
			emit(Trigger{Key: k, Cause: "no longer selected"})
		}
	}
	return nil
}
