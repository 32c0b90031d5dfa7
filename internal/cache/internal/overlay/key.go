package overlay

import (
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Key names an object in all of its versions and representations.
type Key struct {
	Collection
	Name string
}

// KeyOf returns the key of the object that ref names.
func KeyOf(ref wire.Ref) Key {
	namespace := ref.Namespace
	if ref.Resource.ClusterScoped {
		namespace = ""
	}
	return Key{Collection{ref.Cluster, ref.Resource.Group, ref.Resource.Plural, namespace}, ref.Name}
}

// ObjectKey returns the key without the cluster and the resource.
func (k Key) ObjectKey() kube.Key { return kube.Key{Namespace: k.Namespace, Name: k.Name} }

// Collection names all objects of a resource in one namespace, or in all if Namespace is empty.
type Collection struct {
	Cluster, Group, Plural, Namespace string
}

// Contains reports whether the object of k is part of c.
func (c Collection) Contains(k Key) bool {
	return c.isSameResource(k.Collection) && (c.Namespace == "" || k.Namespace == c.Namespace)
}

// Overlaps reports whether an object can be part of both c and o.
func (c Collection) Overlaps(o Collection) bool {
	return c.isSameResource(o) && (c.Namespace == "" || o.Namespace == "" || c.Namespace == o.Namespace)
}

func (c Collection) isSameResource(o Collection) bool {
	return c.Cluster == o.Cluster && c.Group == o.Group && c.Plural == o.Plural
}
