package follow

import (
	"maps"
	"unique"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// objectTracker holds the version of each object that a stream has published. It finds the
// difference that a fresh list makes, and drops what a server repeats.
//
// Example: a list shows a at version 3 and b at version 5, and a watch shows b at version 7. A fresh list
// shows a at version 3 and c at version 9:
//
//	first list    a 3, b 5    put returns ChangeAdded for both
//	watch         b 7         put returns ChangeModified
//	              b 5, again  put returns noChange, because 5 precedes 7
//	fresh list    a 3         put returns noChange, because a has not changed
//	              c 9         put returns ChangeAdded
//	              the end     takeMissing returns b at version 7, which the list did not show
//
// If the fresh list shows b at version 6, put returns ChangeModified, because a fresh list may be of a
// restored server.
type objectTracker struct {
	// cluster is the cluster of all keys.
	cluster string
	objects map[trackedKey]trackedObject
	// listCount is the number of lists that were begun, complete or not.
	listCount uint32
	// listedCount is the number of objects that the current list has shown.
	listedCount int
	// undecodable holds the objects that the current list has shown without readable metadata.
	undecodable map[trackedKey]bool
	// hasUnnamed is true if the current list has shown an object whose name cannot be read. That
	// object may be any object that the list has not shown by name.
	hasUnnamed bool
	// deleted holds the deletions that were published within the current list. The version
	// that the list ends with may precede them. A watch from that version shows again what
	// preceded each deletion.
	deleted map[trackedKey]ident.Version
	// newestDeletion is the newest deletion since the current list began. Its name is empty if
	// there was no deletion.
	newestDeletion trackedVersion
	// namespace is the namespace of the last key. Most keys have the namespace of the key before.
	namespace unique.Handle[string]
}

// trackedKey is the key of an object. Many objects share the text of their namespace.
type trackedKey struct {
	namespace unique.Handle[string]
	name      string
}

type trackedObject struct {
	version ident.Version
	// listCount is the number of the list that has shown the object last. A watch has the number of the list before it.
	listCount uint32
}

// trackedVersion is an object with one version of it.
type trackedVersion struct {
	key     kube.Key
	version ident.Version
}

func newObjectTracker(cluster string) objectTracker {
	return objectTracker{
		cluster: cluster, objects: make(map[trackedKey]trackedObject), undecodable: make(map[trackedKey]bool),
		deleted: make(map[trackedKey]ident.Version), namespace: unique.Make(""),
	}
}

// beginList begins a list. Versions from before the list are not compared with those of the list, because the
// versions of a restored server are lower.
func (t *objectTracker) beginList() {
	t.listCount++
	t.listedCount, t.hasUnnamed, t.newestDeletion = 0, false, trackedVersion{}
	clear(t.deleted)
	clear(t.undecodable)
}

// forgetDeletions forgets the deletions up to version: the server will not show again what preceded
// them.
func (t *objectTracker) forgetDeletions(version string) {
	if len(t.deleted) == 0 {
		return
	}
	to := ident.NewVersion("", version)
	maps.DeleteFunc(t.deleted, func(_ trackedKey, deletion ident.Version) bool { return !to.Before(deletion) })
}

// keyOf returns the key of k in the tracker. It shares the text of the namespace with the key before.
func (t *objectTracker) keyOf(k kube.Key) trackedKey {
	if t.namespace.Value() != k.Namespace {
		t.namespace = unique.Make(k.Namespace)
	}
	return trackedKey{t.namespace, k.Name}
}

// put records that an object exists in version v, and returns the change to publish. The change
// is noChange if v is known, or precedes the known version. If another
// object had the name, replaced is its last known version.
func (t *objectTracker) put(k kube.Key, v ident.Version) (replaced trackedVersion, change ChangeType) {
	key := t.keyOf(k)
	old, isKnown := t.objects[key]
	if isKnown && t.isRepeated(v, old) {
		return trackedVersion{}, noChange
	}
	if deletion, ok := t.deleted[key]; ok && v.Before(deletion) {
		return trackedVersion{}, noChange
	}
	if !isKnown || old.listCount != t.listCount {
		t.listedCount++
	}
	t.objects[key] = trackedObject{version: v, listCount: t.listCount}
	switch {
	case !isKnown:
		return trackedVersion{}, ChangeAdded
	case !old.version.HasSameUID(v):
		return trackedVersion{k, old.version}, ChangeAdded
	case old.version.Equal(v):
		return trackedVersion{}, noChange
	default:
		return trackedVersion{}, ChangeModified
	}
}

// putUndecodable records that the current list has shown an object without readable metadata. So the object
// is not missing.
func (t *objectTracker) putUndecodable(id identity) {
	t.listedCount++
	if id.isKeyKnown {
		t.undecodable[t.keyOf(id.key)] = true
	} else {
		t.hasUnnamed = true
	}
}

// remove records that an object was deleted in version v, and reports whether the deletion is to
// be published. The late deletion of an object whose name another one has taken is not published.
func (t *objectTracker) remove(k kube.Key, v ident.Version, isListing bool) bool {
	key := t.keyOf(k)
	if isListing {
		t.deleted[key] = v
	}
	old, isKnown := t.objects[key]
	if !isKnown || !old.version.HasSameUID(v) || t.isRepeated(v, old) {
		return false
	}
	delete(t.objects, key)
	if t.newestDeletion.key.Name == "" || t.newestDeletion.version.Before(v) {
		t.newestDeletion = trackedVersion{k, v}
	}
	return true
}

// isRepeated reports whether v precedes the known version of an object: the watch was resumed a
// little too early. A version from before the current list is no measure: see beginList.
func (t *objectTracker) isRepeated(v ident.Version, known trackedObject) bool {
	return known.listCount == t.listCount && v.Before(known.version)
}

// takeMissing removes and returns the objects that the current list has not shown. It returns nothing if the
// list has shown an object without a readable name. The next list decides then.
func (t *objectTracker) takeMissing() []trackedVersion {
	if t.hasUnnamed {
		return nil
	}
	var missing []trackedVersion
	for key, o := range t.objects {
		if o.listCount == t.listCount || t.undecodable[key] {
			continue
		}
		delete(t.objects, key)
		missing = append(missing, t.trackedVersion(key, o.version))
	}
	return missing
}

// newest returns the newest change that the stream has published: an object, or a deletion
// since the last list began. ok is false if there is none.
func (t *objectTracker) newest() (newest trackedVersion, isDeleted, ok bool) {
	var at trackedKey
	var latest ident.Version
	for key, o := range t.objects {
		if !ok || latest.Before(o.version) {
			at, latest, ok = key, o.version, true
		}
	}
	if d := t.newestDeletion; d.key.Name != "" && (!ok || latest.Before(d.version)) {
		return d, true, true
	}
	if !ok {
		return trackedVersion{}, false, false
	}
	return t.trackedVersion(at, latest), false, true
}

func (t *objectTracker) trackedVersion(k trackedKey, v ident.Version) trackedVersion {
	return trackedVersion{kube.Key{Cluster: t.cluster, Namespace: k.namespace.Value(), Name: k.name}, v}
}
