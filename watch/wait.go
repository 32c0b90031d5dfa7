package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Until watches the object called name until done returns true, and returns the object for which done
// returned true. done is called with each state of the object. nil stands for an object that does not exist,
// so the result is nil if done waits for a deletion. The object belongs to the caller.
//
//	job, err := watch.Until(ctx, kube.Namespaced[batchv1.Job](client, namespace), "import",
//		func(job *batchv1.Job) (bool, error) { return job != nil && job.Status.Succeeded > 0, nil })
//
// An error of done ends Until, and is returned. When ctx ends, Until returns the cause of ctx, with
// the latest failure of the watch or of the decoding. Until goes on after every other failure, as
// [Events] does. api must be of one namespace, or of a cluster-scoped kind.
//
// A program counts as ready while it waits in Until, because a rollout may bring what it waits for.
//
// Until is for commands, tests and tasks. In a reconcile it would keep a worker from all other
// objects, and is an error.
func Until[T any](ctx context.Context, api kube.API[T], name string, done func(*T) (bool, error)) (*T, error) {
	stream, err := waitStream(ctx, api, name)
	if err != nil {
		return nil, err
	}
	var failure, decodeErr error // why the state of the object is not known now
	isSeen := false
	for change, err := range follow.Changes(follow.WithSyncTracker(ctx, nil), api.Client(), stream) {
		var state *T
		switch {
		case err != nil:
			if _, ok := errors.AsType[*wire.DecodeError](err); ok {
				isSeen, decodeErr = true, err
			} else {
				failure = err
			}
			continue
		case change.Type == follow.ChangeAdded, change.Type == follow.ChangeModified:
			isSeen = true
			if state, decodeErr = api.Decode(change.Object); decodeErr != nil {
				continue
			}
		case change.Type == follow.ChangeDeleted:
			decodeErr = nil
		case change.Type == follow.ChangeListed && !isSeen:
			isSeen = true
		case change.Type == follow.ChangeWatchOpened:
			failure = nil
			continue
		default:
			continue
		}
		if ok, err := done(state); err != nil {
			return nil, fmt.Errorf("wait for %s: %w",
				wire.Ref{Cluster: stream.Cluster, Resource: stream.Resource, Namespace: stream.Namespace, Name: name}, err)
		} else if ok {
			return state, nil
		}
	}
	err = context.Cause(ctx)
	if failure = errors.Join(decodeErr, failure); failure != nil {
		err = fmt.Errorf("%w, after: %w", err, failure)
	}
	return nil, fmt.Errorf("wait for %s: %w",
		wire.Ref{Cluster: stream.Cluster, Resource: stream.Resource, Namespace: stream.Namespace, Name: name}, err)
}

// waitStream returns the stream of the one object that Until waits for.
func waitStream[T any](ctx context.Context, api kube.API[T], name string) (wire.Stream, error) {
	if reason := follow.WaitingRefusal(ctx); reason != nil {
		return wire.Stream{}, fmt.Errorf("wait for %s %q: %w", api.Resource(), name, reason)
	}
	if name == "" {
		return wire.Stream{}, fmt.Errorf("wait for %s: the name is empty", api.Resource())
	}
	streams, err := api.Streams(kube.Field("metadata.name", name))
	switch {
	case err != nil:
		return wire.Stream{}, err
	case len(streams) != 1 || streams[0].Namespace == "" && !streams[0].Resource.ClusterScoped:
		return wire.Stream{}, fmt.Errorf("wait for %s %q: the namespace is missing: use kube.Namespaced",
			api.Resource(), name)
	}
	return streams[0], nil
}
