package kube

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/wire"
)

// kindTable holds the targets of Go types, and what discovery has shown of kinds: the resources of kinds without a Go type, and the status
// subresources of foreign kinds whose status was set in an apply. An entry stays until the server answers with a 404
// for the resource: see [IsNoResource]. A definition may be replaced by another one with another plural. The clients
// that are derived from one client share its table. The methods are safe for concurrent use.
//
// An apply of an unstructured Deployment reads /apis/apps/v1 once. It finds the plural deployments there, and is sent
// to that resource. The next apply of a Deployment reads nothing.
type kindTable struct {
	mu        sync.Mutex
	resources map[clusterKind]wire.Resource
	// statuses says which kinds have a status subresource.
	statuses map[clusterKind]bool

	// goTypes holds the targets of Go types, without namespaces. The key is a reflect.Type, and the value a target without
	// an error. So a type is examined once.
	goTypes sync.Map
}

// clusterKind is a kind of a cluster.
type clusterKind struct {
	cluster string
	schema.GroupVersionKind
}

// targetOf returns the target of the Go type t, without a namespace. examine returns the Type of t. The table of a nil
// client is nil.
func (k *kindTable) targetOf(t reflect.Type, examine func() (Type, error)) target {
	if k != nil {
		if known, ok := k.goTypes.Load(t); ok {
			return known.(target)
		}
	}
	kind, err := examine()
	made := kind.target(err)
	if k != nil && err == nil {
		k.goTypes.Store(t, made)
	}
	return made
}

// find returns the resource of a kind on the server of c. A kind that the server does not have is an error.
func (k *kindTable) find(ctx context.Context, c *Client, kind schema.GroupVersionKind) (wire.Resource, error) {
	key := clusterKind{c.scope.cluster, kind}
	k.mu.Lock()
	r, ok := k.resources[key]
	k.mu.Unlock()
	if ok {
		return r, nil
	}
	resources, err := wire.Discover(ctx, c, kind.GroupVersion())
	if err != nil {
		return wire.Resource{}, err
	}
	for _, r := range resources {
		if r.Kind == kind.Kind {
			k.mu.Lock()
			defer k.mu.Unlock()
			if k.resources == nil {
				k.resources = make(map[clusterKind]wire.Resource)
			}
			k.resources[key] = r
			return r, nil
		}
	}
	return wire.Resource{}, fmt.Errorf(
		"the server has no kind %s in %s: check apiVersion and kind, and whether its CustomResourceDefinition is installed",
		kind.Kind, kind.GroupVersion())
}

// hasStatusSubresource reports whether the server is known to have a status subresource of a resource. An error means
// that the server cannot be reached. Any other failure of discovery means that nothing is known.
func (k *kindTable) hasStatusSubresource(ctx context.Context, c *Client, r wire.Resource) (bool, error) {
	key := clusterKind{c.scope.cluster, r.GroupVersionKind}
	k.mu.Lock()
	has, ok := k.statuses[key]
	k.mu.Unlock()
	if ok {
		return has, nil
	}
	response, err := c.Do(ctx,
		&wire.Request{Verb: wire.VerbGet, Resource: wire.Resource{GroupVersionKind: r.GroupVersion().WithKind("")}})
	if err != nil {
		if IsUnreachable(err) {
			return false, err
		}
		return false, nil
	}
	var list metav1.APIResourceList
	if err := Unmarshal(response.Body, &list); err != nil || list.Kind != "APIResourceList" {
		return false, nil
	}
	has = slices.ContainsFunc(list.APIResources,
		func(each metav1.APIResource) bool { return each.Name == r.Plural+"/status" })
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.statuses == nil {
		k.statuses = make(map[clusterKind]bool)
	}
	k.statuses[key] = has
	return has, nil
}

// forget removes what is known of a kind.
func (k *kindTable) forget(cluster string, kind schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.resources, clusterKind{cluster, kind})
	delete(k.statuses, clusterKind{cluster, kind})
}
