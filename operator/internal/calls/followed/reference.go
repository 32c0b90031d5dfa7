// Package followed reads, watches and writes one object of the cluster, and knows what a keeper has seen of the object.
// A keeper brings an object to the state that is due, whatever others do to the object. The objects are the webhook
// configurations, their Namespace, the Secret of their certificates, and the CustomResourceDefinitions whose objects
// are converted.
//
// [Deployment] is only read: it says whether the installation of the program is being removed.
//
// Within 10 seconds after a change by somebody else an object is right again: a keeper writes the object at most 10
// times in 5 seconds, and repeats an attempt that has failed after at most [MaxRetry].
package followed

import (
	"context"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Reference is one object, which it reads, watches and writes by any client. T has the fields of the object that
// matter. A Reference is safe for concurrent use.
type Reference[T any] struct {
	// The methods of Reference are compiled for each T. So the methods of Address, which know no T, do the work.
	Address
}

// ReferenceTo returns a reference to the object of a resource and a key.
func ReferenceTo[T any](resource wire.Resource, key kube.Key) Reference[T] {
	return Reference[T]{Address{resource, key}}
}

// State is a state of an object.
type State[T any] struct {
	// Object is the object. Its fields are zero if the object does not exist.
	Object *T
	// Version is a resourceVersion at which the object had this state.
	Version string
}

// Read returns the object as the server has it. The request is a list, because a watch needs this permission anyway.
func (r Reference[T]) Read(ctx context.Context, client *kube.Client) (State[T], error) {
	object := new(T)
	version, err := r.read(ctx, client, object)
	return State[T]{object, version}, err
}

// Write sends a patch of the object, and returns what the server has stored. An apply takes fields from other managers.
// The write fails if the server has another object than the preconditions say: see [IsOutdated].
func (r Reference[T]) Write(
	ctx context.Context, client *kube.Client, contentType string, patch any, preconditions wire.Preconditions,
) (State[T], error) {
	object := new(T)
	version, err := r.write(ctx, client, contentType, patch, preconditions, object)
	return State[T]{object, version}, err
}

// Watch calls observe with each state of the object, or with an error of the watch, which then goes on. It ends when
// ctx ends.
func (r Reference[T]) Watch(ctx context.Context, client *kube.Client, observe func(State[T], error)) {
	r.watch(ctx, client, func(version string, decode func(object any) error) {
		object := new(T)
		err := decode(object)
		observe(State[T]{object, version}, err)
	})
}

// IsOutdated reports whether a write was refused because the object is not the one that the write names.
func IsOutdated(err error) bool {
	return kube.IsConflict(err) || kube.IsUIDConflict(err) || kube.IsNotFound(err)
}
