package kube

import "k8s.io/apimachinery/pkg/types"

// Key names one object of a resource that is known from the context. It is comparable.
type Key struct {
	// Cluster is the name of another cluster. It is always empty today: a client of [NewClient] has one server, the home
	// cluster.
	Cluster string
	// Namespace is empty for an object of a cluster-scoped resource.
	Namespace string
	Name      string
}

// KeyOf returns the key of a name that client-go or controller-runtime uses, in the home cluster.
func KeyOf(name types.NamespacedName) Key { return Key{Namespace: name.Namespace, Name: name.Name} }

// NamespacedName returns the name of k for client-go and controller-runtime. It has no cluster.
func (k Key) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// KeysOf returns the keys of objects, such as the objects of a list. They are keys of the home cluster.
func KeysOf[O Object](objects ...O) []Key {
	keys := make([]Key, 0, len(objects))
	for _, o := range objects {
		keys = append(keys, Key{Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	return keys
}

// String returns the key as namespace/name, such as default/web. A cluster other than the
// home cluster precedes it, as in west:default/web.
func (k Key) String() string {
	s := k.Name
	if k.Namespace != "" {
		s = k.Namespace + "/" + s
	}
	if k.Cluster != "" {
		s = k.Cluster + ":" + s
	}
	return s
}
