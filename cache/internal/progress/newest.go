package progress

import "github.com/yare-go/yare/internal/ident"

// newestChanges are the resource versions of the newest changes that a stream has published,
// by namespace. A store that is behind one of them must not answer whoever saw that change.
//
// Bookmarks and the versions of lists are no changes. An object that a list brings counts by
// its own version, and an object that a list misses counts by the version of the list.
type newestChanges struct {
	// recent and older together hold the namespaces with the newest changes, none of them twice.
	// When recent is full, it takes the place of older, whose changes base then covers.
	recent, older map[string]newestChange
	// base is at least as new as each change in the namespaces that neither map holds. Its version
	// is empty if there is no such change.
	base newestChange
	// list counts the lists that were begun.
	list uint32
}

// newestChange is the newest change in one namespace.
type newestChange struct {
	// version is empty if there was no change.
	version string
	// unknown is true after a deletion whose version is not known yet. No other store is known
	// to have it.
	unknown bool
	// list is the number of lists that were begun before the change.
	list uint32
}

// maxRecentNamespaces bounds each of the maps of newestChanges.
const maxRecentNamespaces = 64

// beginList records that a list was asked for: until listed, changes come in no order.
func (n *newestChanges) beginList() { n.list++ }

// record records a change at version.
func (n *newestChanges) record(namespace, version string, listing bool) {
	old := n.in(namespace)
	switch {
	case old.unknown && listing: // the end of the list settles it
	case !ident.IsComparable(version):
		n.recordUnknown(namespace)
	case old.unknown || !ident.IsNewer(old.version, version): // objects of a list come in no order
		n.set(namespace, newestChange{version: version, list: n.list})
	}
}

// recordUnknown records a deletion whose version is not known.
func (n *newestChanges) recordUnknown(namespace string) {
	n.set(namespace, newestChange{unknown: true, list: n.list})
}

func (n *newestChanges) set(namespace string, c newestChange) {
	if _, has := n.recent[namespace]; !has && len(n.recent) >= maxRecentNamespaces {
		for _, evicted := range n.older {
			n.base = n.base.later(evicted)
		}
		n.recent, n.older = nil, n.recent
	}
	delete(n.older, namespace)
	if n.recent == nil {
		n.recent = make(map[string]newestChange)
	}
	n.recent[namespace] = c
}

// listed records that a list is complete. What was published before the list began is part of
// it, or was undone by the restoration of a backup.
func (n *newestChanges) listed(version string) {
	for _, changes := range []map[string]newestChange{n.recent, n.older} {
		for namespace, c := range changes {
			changes[namespace] = c.boundBy(version, n.list)
		}
	}
	n.base = n.base.boundBy(version, n.list)
}

// boundBy returns c as it counts once the list of that number is complete.
func (c newestChange) boundBy(version string, list uint32) newestChange {
	if c.unknown || c.list != list && ident.IsNewer(c.version, version) {
		c.version, c.unknown = version, false
	}
	return c
}

// in returns the newest change in a namespace. The empty namespace means the newest change in any namespace.
func (n *newestChanges) in(namespace string) newestChange {
	if namespace != "" {
		if c, has := n.recent[namespace]; has {
			return c
		}
		if c, has := n.older[namespace]; has {
			return c
		}
		return n.base
	}
	newest := n.base
	for _, changes := range []map[string]newestChange{n.older, n.recent} {
		for _, c := range changes {
			newest = newest.later(c)
		}
	}
	return newest
}

// later returns the later of two changes.
func (c newestChange) later(o newestChange) newestChange {
	if o.unknown || !c.unknown && (c.version == "" || ident.IsNewer(o.version, c.version)) {
		return o
	}
	return c
}

// isIn reports whether a store at version has the change.
func (c newestChange) isIn(version string) bool {
	return !c.unknown && (c.version == "" || ident.HasReached(version, c.version))
}
