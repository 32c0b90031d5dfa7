package cache

import "github.com/yare-go/yare/kube"

// wrote tells whether r, or its deletion, is known to be the outcome of a write that went
// through a Handler of c. The store of s shows it already: what the overlay has kept for
// that long goes.
func (c *Cache) wrote(s kube.Stream, r Record, deleted bool) bool {
	k := keyOf(kube.Ref{Cluster: s.Cluster, Resource: s.Resource, Namespace: r.Namespace, Name: r.Name})
	e, ok := c.overlay.get(k)
	if !ok {
		return false
	}
	defer c.tidy(k, e, false)
	if deleted {
		return e.kind == tombstone && e.uid == r.UID
	}
	return e.wrote(r.UID, r.ResourceVersion)
}
