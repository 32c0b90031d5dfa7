package watch

import (
	"maps"
	"unique"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/yare-go/yare/internal/ident"
)

// known is what a stream has told of so far: enough to tell the difference that a fresh
// list makes.
type known struct {
	objects map[key]entry
	// round counts lists, finished or not. An entry that the current round has not met when
	// its list ends is gone.
	round uint32
	// deleted are the deletions that were told within the current list. The version that the
	// list ends with may be from before them; then whoever goes on from there is told again
	// what had been there until then.
	deleted map[key]ident.Version
	// last is the namespace that was looked up last, which mostly is the next one too.
	last unique.Handle[string]
}

// key is the place of an object. Namespaces are many times the same.
type key struct {
	namespace unique.Handle[string]
	name      string
}

type entry struct {
	version ident.Version
	round   uint32
}

func newKnown() known {
	return known{objects: make(map[key]entry), deleted: make(map[key]ident.Version), last: unique.Make("")}
}

// relist begins a round.
func (k *known) relist() {
	k.round++
	clear(k.deleted)
}

// reached notes that nothing from before version will be told again.
func (k *known) reached(version string) {
	if len(k.deleted) == 0 {
		return
	}
	to := ident.NewVersion("", version)
	maps.DeleteFunc(k.deleted, func(_ key, deletion ident.Version) bool { return !to.Older(deletion) })
}

func (k *known) key(r Record) key {
	if k.last.Value() != r.Namespace {
		k.last = unique.Make(r.Namespace)
	}
	return key{k.last, r.Name}
}

// put notes r, and says which changes that makes: none for a version that is known, and
// two if another object has taken the name.
func (k *known) put(r Record) (replaced *Record, change ChangeType) {
	at, now := k.key(r), entry{version: ident.NewVersion(r.UID, r.ResourceVersion), round: k.round}
	old, had := k.objects[at]
	if had && k.repeated(now.version, old) {
		return nil, 0
	}
	if deletion, was := k.deleted[at]; was && now.version.Older(deletion) {
		return nil, 0
	}
	k.objects[at] = now
	switch {
	case !had:
		return nil, ChangeAdded
	case !old.version.SameObject(now.version):
		gone := old.record(at)
		return &gone, ChangeAdded
	case old.version.Same(now.version):
		return nil, 0
	default:
		return nil, ChangeModified
	}
}

// remove forgets r, and says whether it was known. The late deletion of an object whose
// name another has taken is not one of that other.
func (k *known) remove(r Record, listing bool) bool {
	at, now := k.key(r), ident.NewVersion(r.UID, r.ResourceVersion)
	if listing {
		k.deleted[at] = now
	}
	old, had := k.objects[at]
	if !had || !old.version.SameObject(now) || k.repeated(now, old) {
		return false
	}
	delete(k.objects, at)
	return true
}

// repeated tells that a version is from before what is known: a watch that was resumed a
// little too early. What is known from before the current list is no measure: a server that
// was restored from a backup has gone back in time.
func (k *known) repeated(v ident.Version, e entry) bool {
	return e.round == k.round && v.Older(e.version)
}

// older compares two versions of one resource. What cannot be compared is not older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// missing forgets all that the current round has not met, one by one.
func (k *known) missing(yield func(Record) bool) {
	for key, e := range k.objects {
		if e.round == k.round {
			continue
		}
		delete(k.objects, key)
		if !yield(e.record(key)) {
			return
		}
	}
}

func (e entry) record(k key) Record {
	return Record{
		Namespace: k.namespace.Value(), Name: k.name, UID: e.version.UID(), ResourceVersion: e.version.ResourceVersion(),
	}
}
