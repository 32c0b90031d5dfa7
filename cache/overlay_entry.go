package cache

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/yare-go/yare/kube"
)

type entryKind uint8

const (
	// doubt: the state is not known.
	doubt entryKind = iota
	// value: the object is at least as new as this.
	value
	// tombstone: all that have been seen under the name are gone.
	tombstone
)

// overlayEntry is what is known of one object beside the streams. It is never changed:
// another one takes its place.
type overlayEntry struct {
	kind entryKind
	// uid is that of a value, or of the object whose deletion was answered with a tombstone;
	// it is empty if a read has found nothing.
	uid types.UID
	// version is one from which on a stream is right, whatever it shows. Of a value it is
	// its own; for others it is mostly found out later, and empty until then.
	version string
	// seen are those that had the name so far. A tombstone is about all of them.
	seen []sighting
	// object is a value as the server answered, in this version and form.
	object   []byte
	resource kube.Resource
	form     kube.Representation

	// tick is when it was noted, in the order of all that was noted and begun.
	tick uint64
	at   time.Time
}

// sighting is an object that was there under a name.
type sighting struct {
	uid types.UID
	// version is one that it was there at; empty if none is known.
	version string
}

// mostSeen is how many are remembered under one name, not counting those of which no version
// is known. More than one at a time are rare: it takes an object that is deleted and made anew
// faster than the streams tell.
const mostSeen = 8

// settleAfter is the age at which an entry is not trusted any more. Streams show a write
// within moments; that one did not for so long may mean that the server's versions have
// moved backwards, as after the restoration of a backup.
const settleAfter = time.Minute

func (e *overlayEntry) old() bool { return time.Since(e.at) > settleAfter }

func (e *overlayEntry) saw(uid types.UID) bool {
	return slices.ContainsFunc(e.seen, func(s sighting) bool { return s.uid == uid })
}

// lastSeen is, of a tombstone, a version after which only others than those that are gone
// can have the name. It is not known if that of one of them is not, or if it is not known
// who was the last.
func (e *overlayEntry) lastSeen() (version string, known bool) {
	if e.uid == "" {
		return "", false
	}
	for _, s := range e.seen {
		if s.version == "" {
			return "", false
		}
		if version == "" || newer(s.version, version) {
			version = s.version
		}
	}
	return version, version != ""
}

// passed tells that a stream at version, which shows this object or none, has seen what the
// entry is about. Of one that selects, that it shows none says nothing: an object that is
// gone may have come to match in a version that is still to be told.
func (e *overlayEntry) passed(version string, o Record, there, selects bool) bool {
	if e.version != "" && (reached(version, e.version) || there && reached(o.ResourceVersion, e.version)) {
		return true
	}
	if e.kind != tombstone || there && e.saw(o.UID) || !there && selects {
		return false
	}
	last, known := e.lastSeen()
	return known && reached(version, last)
}

// serves tells whether the entry has what a read asks for. The metadata are the same in all
// versions.
func (e *overlayEntry) serves(r kube.Resource, form kube.Representation) bool {
	return e.object != nil && (form == kube.MetadataOnly || e.form == kube.Full && sameResource(e.resource, r))
}

// after is what is known when e is noted while there was old. Later tells that what e says
// was asked when old was known already; otherwise both were under way at the same time, and
// the answers have come in any order.
func (e overlayEntry) after(old overlayEntry, later bool) overlayEntry {
	if !later {
		e = concurrent(old, e)
	}
	for _, s := range old.seen {
		e.seen = addSighting(e.seen, s)
	}
	return e
}

// concurrent is what two answers say together of which either may be the later one.
func concurrent(a, b overlayEntry) overlayEntry {
	if a.kind == tombstone && b.kind != tombstone {
		a, b = b, a
	}
	unsure := overlayEntry{kind: doubt, seen: b.seen}
	for _, s := range a.seen {
		unsure.seen = addSighting(unsure.seen, s)
	}
	switch {
	case a.kind == doubt || b.kind == doubt:
		if a.version != "" && b.version != "" {
			unsure.version = a.version
			if newer(b.version, a.version) {
				unsure.version = b.version
			}
		}
		return unsure
	case a.kind == tombstone: // both are gone
		if a.uid == "" {
			b.uid = ""
		}
		return b
	case b.kind == value:
		if newer(a.version, b.version) {
			return a
		}
		return b
	}
	// A value, and a tombstone: of the same object, or of one that had the name before or
	// afterwards. One without a uid does not tell which.
	last, known := b.lastSeen()
	switch {
	case b.saw(a.uid):
		for _, s := range a.seen {
			b.seen = addSighting(b.seen, s)
		}
		return b
	case !known:
		return unsure
	case newer(a.version, last):
		return a
	default:
		return b
	}
}

// addSighting adds s; of each uid the latest counts.
func addSighting(seen []sighting, s sighting) []sighting {
	i := slices.IndexFunc(seen, func(other sighting) bool { return other.uid == s.uid })
	switch {
	case s.uid == "" || i >= 0 && (s.version == "" || newer(seen[i].version, s.version)):
		return seen
	case i >= 0:
		seen = slices.Clone(seen)
		seen[i] = s
		return seen
	}
	return forgetOldest(append(slices.Clone(seen), s))
}

// forgetOldest forgets the oldest of too many: a stream that has got as far as the latest of
// them cannot show it any more. Those without a version stay, because of them that is not
// known.
func forgetOldest(seen []sighting) []sighting {
	oldest, dated := -1, 0
	for i, s := range seen {
		if s.version == "" {
			continue
		}
		if dated++; oldest < 0 || newer(seen[oldest].version, s.version) {
			oldest = i
		}
	}
	if dated <= mostSeen {
		return seen
	}
	return slices.Delete(seen, oldest, oldest+1)
}

// newer tells that version a is later than b. Versions that are no numbers tell nothing.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// reached tells that a stream at version has seen what was written at written.
func reached(version, written string) bool {
	order, err := resourceversion.CompareResourceVersion(version, written)
	return err == nil && order >= 0
}

// comparableVersion tells versions that can be compared from those that cannot.
func comparableVersion(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, "1")
	return err == nil
}
