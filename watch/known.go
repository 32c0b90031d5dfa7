package watch

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// known is what a stream has told of so far: enough to tell the difference that a fresh
// list makes.
type known struct {
	objects map[key]entry
	// round counts lists, finished or not. An entry that the current round has not met when
	// its list ends is gone.
	round uint32
}

type entry struct {
	uid     types.UID
	version string
	round   uint32
}

// put notes r, and says which changes that makes: none for a version that is known, and
// two if another object has taken the name.
func (k *known) put(r Record) (replaced *Record, change ChangeType) {
	old, had := k.objects[r.key()]
	if had && k.repeated(r, old) {
		return nil, 0
	}
	k.objects[r.key()] = entry{uid: r.UID, version: r.ResourceVersion, round: k.round}
	switch {
	case !had:
		return nil, ChangeAdded
	case old.uid != r.UID:
		gone := old.record(r.key())
		return &gone, ChangeAdded
	case old.version == r.ResourceVersion:
		return nil, 0
	default:
		return nil, ChangeModified
	}
}

// remove forgets r, and says whether it was known. The late deletion of an object whose
// name another has taken is not one of that other.
func (k *known) remove(r Record) bool {
	old, had := k.objects[r.key()]
	if !had || old.uid != r.UID || k.repeated(r, old) {
		return false
	}
	delete(k.objects, r.key())
	return true
}

// repeated tells that r is from before what is known: a watch that was resumed a little too
// early. What is known from before the current list is no measure: a server that was
// restored from a backup has gone back in time.
func (k *known) repeated(r Record, e entry) bool {
	return e.round == k.round && older(r.ResourceVersion, e.version)
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
	return Record{Namespace: k.namespace, Name: k.name, UID: e.uid, ResourceVersion: e.version}
}
