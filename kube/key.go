package kube

// Key names one object of a resource that is known from the context. It is comparable.
type Key struct {
	// Cluster is empty for the home cluster.
	Cluster string
	// Namespace is empty for an object of a cluster-scoped resource.
	Namespace string
	Name      string
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
