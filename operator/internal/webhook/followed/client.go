// Package followed reads, watches and writes one object of the cluster, and knows what a keeper has seen of the object. A keeper
// brings an object to the state that is due, whatever others do to the object. The objects are the webhook configurations, their
// Namespace, and the CustomResourceDefinitions whose objects are converted.
//
// Within 10 seconds after a change by somebody else an object is right again: a keeper writes the object at most 10 times in 5
// seconds, and an attempt that has failed is repeated after at most 5 seconds.
package followed

import (
	"context"
	"fmt"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Client reads, watches and writes one object outside of namespaces. T has the fields of the object that matter. It is safe for
// concurrent use.
type Client[T any] struct {
	Resource wire.Resource
	Name     string
}

// State is a state of an object.
type State[T any] struct {
	// Object is the object. Its fields are zero if the object does not exist.
	Object *T
	// Version is a resourceVersion at which the object had this state.
	Version string
}

// String returns the kind and the name of the object.
func (c Client[T]) String() string { return c.Resource.Kind + " " + c.Name }

// stream returns the stream that has the object alone.
func (c Client[T]) stream() wire.Stream {
	return wire.Stream{Resource: c.Resource, FieldSelector: "metadata.name=" + c.Name}
}

// Read returns the object as the server has it. The request is a list, because a watch needs this permission anyway.
func (c Client[T]) Read(ctx context.Context, client *kube.Client) (State[T], error) {
	r := c.stream().Request(wire.VerbList)
	r.Live = true
	response, err := client.Do(ctx, r)
	if err != nil {
		return State[T]{}, err
	}
	type head struct {
		Metadata metadata `json:"metadata"`
	}
	var list struct {
		head
		Items []*T `json:"items"`
	}
	var heads struct {
		Items []head `json:"items"`
	}
	if kube.Unmarshal(response.Body, &list) != nil || kube.Unmarshal(response.Body, &heads) != nil || len(list.Items) > 1 {
		return State[T]{}, fmt.Errorf("the answer to a list of the %s is not that of a Kubernetes API", c)
	}
	if len(list.Items) == 0 {
		return State[T]{new(T), list.Metadata.ResourceVersion}, nil
	}
	return State[T]{list.Items[0], heads.Items[0].Metadata.ResourceVersion}, nil
}

type metadata struct {
	ResourceVersion string `json:"resourceVersion"`
}

// Write sends a patch of the object, and returns what the server has stored. An apply takes fields from other managers. The write
// fails if the server has another object than the preconditions say: see [IsOutdated].
func (c Client[T]) Write(ctx context.Context, client *kube.Client, contentType string, patch any, preconditions wire.Preconditions) (State[T], error) {
	body, err := kube.Marshal(patch)
	if err != nil {
		return State[T]{}, err
	}
	r := c.request(wire.VerbPatch)
	r.Query.Set("fieldManager", client.FieldManager())
	if contentType == wire.ContentApply {
		r.Query.Set("force", "true")
	}
	r.ContentType, r.Body, r.Preconditions = contentType, body, preconditions
	response, err := client.Do(ctx, r)
	if err != nil {
		return State[T]{}, err
	}
	var stored struct {
		Metadata metadata `json:"metadata"`
	}
	object, err := c.decode(response.Body)
	if err == nil {
		err = kube.Unmarshal(response.Body, &stored)
	}
	return State[T]{object, stored.Metadata.ResourceVersion}, err
}

// Delete sends a request that deletes the object. options are DeleteOptions as JSON.
func (c Client[T]) Delete(ctx context.Context, client *kube.Client, options []byte, preconditions wire.Preconditions) error {
	r := c.request(wire.VerbDelete)
	r.Body, r.Preconditions = options, preconditions
	_, err := client.Do(ctx, r)
	return err
}

// request returns a request for the object by its name.
func (c Client[T]) request(verb wire.Verb) *wire.Request {
	r := c.stream().Request(verb)
	r.Query.Del("fieldSelector")
	r.Name = c.Name
	return r
}

func (c Client[T]) decode(content []byte) (*T, error) {
	object := new(T)
	if err := kube.Unmarshal(content, object); err != nil {
		return nil, fmt.Errorf("the %s is not that of a Kubernetes API: %w", c, err)
	}
	return object, nil
}

// Watch calls observe with each state of the object, or with an error of the watch, which then goes on. It ends when ctx ends.
func (c Client[T]) Watch(ctx context.Context, client *kube.Client, observe func(State[T], error)) {
	for state, err := range follow.Object(ctx, client, c.stream()) {
		s := State[T]{new(T), state.ResourceVersion}
		if err == nil && state.Object != nil {
			s.Object, err = c.decode(state.Object)
		}
		observe(s, err)
	}
}

// IsOutdated reports whether a write was refused because the object is not the one that the write names.
func IsOutdated(err error) bool {
	return kube.IsConflict(err) || kube.IsUIDConflict(err) || kube.IsNotFound(err)
}
