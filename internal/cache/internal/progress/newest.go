package progress

import "github.com/yare-go/yare/internal/ident"

// newestChanges are the resource versions of the newest changes that a stream has published, by namespace. A
// store behind one of these changes must not answer anybody who has received the change.
//
// Bookmarks and the versions of lists are no changes. An object that a list brings counts by its own version.
// A deletion that a list shows counts by the version of the list. If the server does not serve the kind any more, there
// is no list: the deletions of its objects count by the version of the next list that is complete.
//
// The namespaces are kept in two generations, so that their number is bounded. Example with a bound of two
// namespaces for each generation, and changes in the namespaces a, b, c, a, d and e at the versions 1 to 6:
//
//	change   current      previous     evicted
//	a 1      a 1
//	b 2      a 1, b 2
//	c 3      c 3          a 1, b 2
//	a 4      c 3, a 4     b 2
//	d 5      d 5          c 3, a 4     2
//	e 6      d 5, e 6     c 3, a 4     2
//
// The newest change in c is at 3. For b, and for each namespace that is in no generation, the answer is 2. That is
// too high for a namespace without changes, but never too low.
type newestChanges struct {
	// current and previous hold the newest change of each namespace, none of them twice. When current is
	// full, it becomes previous.
	current, previous map[string]newestChange
	// evicted is at least as new as each change in the namespaces of former generations. Its version
	// is empty if there is no such change.
	evicted newestChange
	// listCount counts the lists that were begun.
	listCount uint32
}

// newestChange is the newest change in one namespace.
type newestChange struct {
	// version is empty if there was no change.
	version string
	// isUnknown is true after a deletion whose version is not known yet. No other store is known
	// to have it.
	isUnknown bool
	// listCount is the number of lists that were begun before the change.
	listCount uint32
}

// maxNamespaces is the number of namespaces at which a generation of newestChanges is full.
const maxNamespaces = 64

// beginList records that a list was asked for. Until endList, changes come in no order.
func (n *newestChanges) beginList() { n.listCount++ }

// record records a change at version.
func (n *newestChanges) record(namespace, version string, isListing bool) {
	old := n.newestIn(namespace)
	switch {
	case old.isUnknown && isListing: // the end of the list settles it
	case !ident.IsComparable(version):
		n.recordUnknown(namespace)
	case old.isUnknown || !ident.IsNewer(old.version, version): // objects of a list come in no order
		n.set(namespace, newestChange{version: version, listCount: n.listCount})
	}
}

// recordUnknown records a deletion whose version is not known.
func (n *newestChanges) recordUnknown(namespace string) {
	n.set(namespace, newestChange{isUnknown: true, listCount: n.listCount})
}

// set replaces the newest change in a namespace.
func (n *newestChanges) set(namespace string, c newestChange) {
	if _, has := n.current[namespace]; !has && len(n.current) >= maxNamespaces {
		for _, old := range n.previous {
			n.evicted = n.evicted.later(old)
		}
		n.current, n.previous = nil, n.current
	}
	delete(n.previous, namespace)
	if n.current == nil {
		n.current = make(map[string]newestChange)
	}
	n.current[namespace] = c
}

// endList records that a list is complete. What was published before the list began is part of
// it, or was undone by the restoration of a backup.
func (n *newestChanges) endList(version string) {
	for _, changes := range []map[string]newestChange{n.current, n.previous} {
		for namespace, c := range changes {
			changes[namespace] = c.afterList(version, n.listCount)
		}
	}
	n.evicted = n.evicted.afterList(version, n.listCount)
}

// afterList returns c as it counts once the list with the number listCount is complete.
func (c newestChange) afterList(version string, listCount uint32) newestChange {
	if c.isUnknown || c.listCount != listCount && ident.IsNewer(c.version, version) {
		c.version, c.isUnknown = version, false
	}
	return c
}

// newestIn returns the newest change in a namespace. The empty namespace means the newest change in any namespace.
func (n *newestChanges) newestIn(namespace string) newestChange {
	if namespace != "" {
		if c, has := n.current[namespace]; has {
			return c
		}
		if c, has := n.previous[namespace]; has {
			return c
		}
		return n.evicted
	}
	newest := n.evicted
	for _, changes := range []map[string]newestChange{n.previous, n.current} {
		for _, c := range changes {
			newest = newest.later(c)
		}
	}
	return newest
}

// later returns the later of two changes.
func (c newestChange) later(o newestChange) newestChange {
	if o.isUnknown || !c.isUnknown && (c.version == "" || ident.IsNewer(o.version, c.version)) {
		return o
	}
	return c
}

// isIn reports whether a store at version has the change.
func (c newestChange) isIn(version string) bool {
	return !c.isUnknown && (c.version == "" || ident.HasReached(version, c.version))
}
