package controller

import (
	"context"
	"fmt"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// newReader returns the client of map functions. It reads what the sources of the controller show.
// It goes to the server only for what a source shows and what the program's own writes have left in
// doubt.
func (e *engine) newReader(view *cache.View) *kube.Client {
	return e.runtime.Client.With(func(server kube.Handler) kube.Handler {
		cached := view.Handler(kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
			if !e.coversRead(r) {
				return nil, uncoveredRead(r)
			}
			return server.Do(ctx, r)
		}))
		return kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
			if r.Verb.IsWrite() {
				return nil, fmt.Errorf("%s %s in a map function: a map function only finds out which objects a change concerns: write in the reconcile", r.Verb, r.Ref())
			}
			return cached.Do(ctx, r)
		})
	})
}

// coversRead reports whether a source of the controller shows what r reads.
func (e *engine) coversRead(r *kube.Request) bool {
	if r.Verb == kube.VerbWatch || r.Subresource != "" || r.Live {
		return false
	}
	for _, sub := range e.subs {
		s := sub.stream
		switch {
		case s.Cluster != r.Cluster || s.Resource != r.Resource:
		case s.Representation != kube.Full && s.Representation != r.Representation:
		case s.Namespace != "" && s.Namespace != r.Namespace:
		case s.LabelSelector == "" && s.FieldSelector == "" && s.ShardSelector == "":
			return true
		case r.Verb == kube.VerbGet:
			if _, ok := sub.open.Store().Get(kube.Key{Namespace: r.Namespace, Name: r.Name}); ok {
				return true
			}
		}
	}
	return false
}

// uncoveredRead returns the error of a map function that reads what no source shows.
func uncoveredRead(r *kube.Request) error {
	option := fmt.Sprintf("controller.Owns or controller.Watches of the kind %s, without controller.Select", r.Resource.Kind)
	if r.Resource.IsSecret() && r.Representation == kube.Full {
		option += " and with controller.KeepSecrets"
	}
	if r.Subresource != "" {
		return fmt.Errorf("%s %s %s in a map function: a map function reads whole objects only: read the subresource in the reconcile", r.Verb, r.Ref(), r.Subresource)
	}
	if r.Live {
		return fmt.Errorf("%s %s in a map function: a map function reads from the cache only: read live in the reconcile", r.Verb, r.Ref())
	}
	what := r.Ref().String()
	if r.Name == "" {
		what = kube.Stream{Resource: r.Resource, Namespace: r.Namespace}.String()
	}
	return fmt.Errorf("%s %s in a map function: no source of the controller shows all that is read: add %s, or read it in the reconcile", r.Verb, what, option)
}
