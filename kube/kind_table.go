package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/wire"
)

// kindTable holds the resources of kinds, as discovery has shown them: those of kinds without a Go type, and those of
// foreign kinds whose status was set in an apply. An entry stays until the
// server answers with a 404 for the resource: see [IsNoResource]. A definition may be replaced by another one with
// another plural. The clients that are derived from one client share its table. The methods are safe for concurrent use.
//
// An apply of an unstructured Deployment reads /apis/apps/v1 once. It finds the plural deployments there, and is sent
// to that resource. The next apply of a Deployment reads nothing.
type kindTable struct {
	mu        sync.Mutex
	resources map[clusterKind]wire.ServedResource
}

// clusterKind is a kind of a cluster.
type clusterKind struct {
	cluster string
	schema.GroupVersionKind
}

// find returns the resource of a kind on the server of c. A kind that the server does not have is an error.
func (k *kindTable) find(ctx context.Context, c *Client, kind schema.GroupVersionKind) (wire.ServedResource, error) {
	key := clusterKind{c.scope.cluster, kind}
	k.mu.Lock()
	r, ok := k.resources[key]
	k.mu.Unlock()
	if ok {
		return r, nil
	}
	resources, err := wire.DiscoverServed(ctx, c, kind.GroupVersion())
	if err != nil {
		return wire.ServedResource{}, err
	}
	for _, r := range resources {
		if r.Kind == kind.Kind {
			k.mu.Lock()
			defer k.mu.Unlock()
			if k.resources == nil {
				k.resources = make(map[clusterKind]wire.ServedResource)
			}
			k.resources[key] = r
			return r, nil
		}
	}
	return wire.ServedResource{}, fmt.Errorf("the server has no kind %s in %s: check apiVersion and kind, and whether its CustomResourceDefinition is installed",
		kind.Kind, kind.GroupVersion())
}

// hasStatusSubresource reports whether a resource is known to have a status subresource. An error means that the server
// cannot be reached. Any other failure of discovery means that nothing is known.
func (k *kindTable) hasStatusSubresource(ctx context.Context, c *Client, r wire.Resource) (bool, error) {
	served, err := k.find(ctx, c, r.GroupVersionKind)
	if IsUnreachable(err) {
		return false, err
	}
	return err == nil && served.Plural == r.Plural && slices.Contains(served.Subresources, "status"), nil
}

// forget removes the resource of a kind.
func (k *kindTable) forget(cluster string, kind schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.resources, clusterKind{cluster, kind})
}
