package overlay

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// Kind is the kind of an entry.
type Kind uint8

const (
	// UnknownState means that only the server knows the state of the object.
	UnknownState Kind = iota
	// Value means that the object is at least as new as the entry.
	Value
	// Tombstone means that all objects that are known to have had the name are gone.
	Tombstone
)

// Entry is what is known of one object beside the stores. It is never changed: another one
// takes its place.
type Entry struct {
	Kind Kind
	// UID is the uid of a value, or of the object whose deletion a tombstone was answered with. It
	// is empty if a read found nothing.
	UID types.UID
	// Version is a resource version from which on every store is right. A value has its own;
	// other entries mostly get one later, and have none until then.
	Version string
	// Holders are the objects that are known to have had the name, one version for each UID. The resource version is
	// one at which the object existed. It is empty if none is known. A tombstone is about all of these objects.
	Holders []ident.Version
	// Former holds values that had the name before, at most one for each UID and Labels. A stream that lists
	// anew after them has to publish the deletions of these objects.
	Former []Entry
	// Labels are the labels of a value, as the JSON that the server answered. They decide which
	// streams the value is in.
	Labels string
	// Object is the content of a value as the server answered, in the version of Resource and
	// in this representation. It is nil if it is not kept.
	Object         []byte
	Resource       wire.Resource
	Representation wire.Representation

	// began is the tick at which the request of a value began. It does not count for other entries.
	began Tick
	// tick is when the entry was recorded, in the order of all that was recorded and begun.
	tick Tick
	// recorded is the time at which the entry was recorded.
	recorded time.Time
	// isMarkedOld is true if a watch has ended since, so that the entry counts as old.
	isMarkedOld bool
}

const (
	// MaxAge is the age at which an entry is not trusted any more, unless stores agree.
	MaxAge = time.Minute
	// MaxSilence is longer than a watch can be silent before it is replaced. What an open watch
	// has not shown for so long has not happened.
	MaxSilence = 15 * time.Minute
	// maxHolders is how many holders of a name are remembered, not counting those without a known version. More than one
	// at a time are rare: an object must be deleted and created anew before the streams show the deletion.
	maxHolders = 8
)

// Observation is what a store shows of an object.
type Observation struct {
	// Version is the resource version that the store has reached.
	Version string
	// IsPresent reports whether the store shows an object under the name. UID and ResourceVersion
	// are the uid and the resource version of the object.
	IsPresent       bool
	UID             types.UID
	ResourceVersion string
	// HasSelector reports whether the store leaves out the objects that do not match a selector.
	HasSelector bool
	// OpenSince is since when there has been an open watch of the store, apart from short gaps
	// between two of them. It is zero if none is open.
	OpenSince time.Time
}

// ReadResult is what a read finds.
type ReadResult int

const (
	// Uncertain means that only the server knows.
	Uncertain ReadResult = iota
	// Stored means that the store is right.
	Stored
	// Answered means that the content of the entry is right.
	Answered
	// Absent means that the object does not exist.
	Absent
)

// Read returns what a read of r in a representation finds, given what the store shows.
func (e Entry) Read(o Observation, r wire.Resource, representation wire.Representation) ReadResult {
	switch {
	case e.IsObservedBy(o):
		return Stored
	case e.Kind == Tombstone && !o.IsPresent:
		return Absent
	case e.Kind == UnknownState || e.isOld():
		return Uncertain
	case e.Kind == Tombstone:
		// Within a list the store has not reached the version of its objects yet. If an object of another uid
		// is newer than all earlier objects of the name, the object was created after them. It is perhaps not
		// known which of two objects came first.
		switch last, isKnown := e.lastHolderVersion(); {
		case e.hasHolder(o.UID):
			return Absent
		case isKnown && ident.IsNewer(o.ResourceVersion, last):
			return Stored
		case isKnown:
			return Absent
		}
		return Uncertain
	case e.hasContent(r, representation):
		return Answered
	default:
		return Uncertain
	}
}

// IsObservedBy reports whether a store has observed what the entry records, so that the store is
// right whatever it shows.
func (e Entry) IsObservedBy(o Observation) bool {
	if e.Version == "" && hasShownAllSince(o, e.recorded) {
		return true
	}
	if e.Version != "" &&
		(ident.HasReached(o.Version, e.Version) || o.IsPresent && ident.HasReached(o.ResourceVersion, e.Version)) {
		return true
	}
	// A store that selects may show none although it is behind: an object that is gone may have come to match
	// in a version still to be observed.
	if e.Kind != Tombstone || o.IsPresent && e.hasHolder(o.UID) || !o.IsPresent && o.HasSelector {
		return false
	}
	last, isKnown := e.lastHolderVersion()
	return isKnown && ident.HasReached(o.Version, last)
}

// hasShownAllSince reports whether the watch of a store was open for so long that the store has every change
// from before recorded.
func hasShownAllSince(o Observation, recorded time.Time) bool {
	if o.OpenSince.IsZero() {
		return false
	}
	since := recorded
	if o.OpenSince.After(since) {
		since = o.OpenSince
	}
	return time.Since(since) > MaxSilence
}

func (e Entry) isOld() bool { return e.isMarkedOld || time.Since(e.recorded) > MaxAge }

// hasHolder reports whether the object of uid is known to have had the name.
func (e Entry) hasHolder(uid types.UID) bool {
	object := ident.NewVersion(uid, "")
	return slices.ContainsFunc(e.Holders, object.HasSameUID)
}

// lastHolderVersion returns the newest version at which a holder of a tombstone existed. An object of the name with a
// newer version was created later, and is not gone. isKnown is false if the version of one holder is not known, or if
// it is not known which holder was the last.
func (e Entry) lastHolderVersion() (version string, isKnown bool) {
	if e.UID == "" {
		return "", false
	}
	var last ident.Version
	for _, o := range e.Holders {
		if o.ResourceVersion() == "" {
			return "", false
		}
		if last.ResourceVersion() == "" || last.Before(o) {
			last = o
		}
	}
	version = last.ResourceVersion()
	return version, version != ""
}

// hasContent reports whether the entry has what a read asks for. The metadata are the same in
// all versions.
func (e Entry) hasContent(r wire.Resource, representation wire.Representation) bool {
	return e.Object != nil && (representation == wire.MetadataOnly || e.Representation == wire.Full &&
		e.Resource.Group == r.Group && e.Resource.Version == r.Version && e.Resource.Plural == r.Plural)
}

// merge returns the state that is known once e is recorded over old. The request of e began after old was
// recorded, so e counts. Example: a value at version 5 over a value at version 6 is the value at version 5,
// because the server was restored.
func (e Entry) merge(old Entry) Entry { return e.withHistory(old, e) }

// mergeOverlapping returns the state that is known once e is recorded over old. The request of e began before old was
// recorded, so either answer may be the later one. Example: a value at version 5 over a value at version 6 is
// the value at version 6.
func (e Entry) mergeOverlapping(old Entry) Entry { return combineUnordered(old, e).withHistory(old, e) }

// withHistory returns e with the objects and the values of the two entries that it was made of.
func (e Entry) withHistory(old, answer Entry) Entry {
	for _, o := range old.Holders {
		e.Holders = addHolder(e.Holders, o)
	}
	e.Former = formerValues(e, old, answer)
	return e
}

// formerValues returns the latest values in the entries of a name, for each UID and Labels that
// differ from the UID and Labels of e.
func formerValues(e Entry, entries ...Entry) []Entry {
	var former []Entry
	add := func(v Entry) {
		v.Former = nil
		i := slices.IndexFunc(former, v.isInSameStreams)
		switch {
		case v.Kind != Value || e.Kind == Value && v.isInSameStreams(e):
		case i < 0:
			former = append(former, v)
		case ident.IsNewer(v.Version, former[i].Version):
			former[i] = v
		}
	}
	for _, entry := range entries {
		for _, v := range entry.Former {
			add(v)
		}
		add(entry)
	}
	return former[max(0, len(former)-maxHolders):]
}

// isInSameStreams reports whether two values are of one object, and whether each stream selects
// either both values or none.
func (e Entry) isInSameStreams(other Entry) bool {
	return e.UID == other.UID && e.Labels == other.Labels
}

// Values returns the latest values of all objects that are known to have had the name, for each UID
// and Labels: the entry itself, if it is a value, and its former values.
func (e Entry) Values() []Entry {
	if e.Kind != Value {
		return e.Former
	}
	return append(slices.Clip(e.Former), e)
}

// IsRecordedBefore reports whether the entry was recorded before a tick.
func (e Entry) IsRecordedBefore(t Tick) bool { return e.tick < t }

// IsRequestedBefore reports whether the entry is a value, and its request began before a tick.
func (e Entry) IsRequestedBefore(t Tick) bool { return e.Kind == Value && e.began < t }

// AsTombstone returns the entry for a name whose objects are known to be gone since e was recorded.
func (e Entry) AsTombstone() Entry {
	if e.Kind == Tombstone {
		return e
	}
	return Entry{
		Kind: Tombstone, Holders: e.Holders, Former: e.Values(),
		tick: e.tick, recorded: e.recorded, isMarkedOld: e.isMarkedOld,
	}
}

// combineUnordered returns the state known after two answers, either of which may be the later one.
func combineUnordered(a, b Entry) Entry {
	if a.Kind == Tombstone && b.Kind != Tombstone {
		a, b = b, a
	}
	both := b.Holders
	for _, o := range a.Holders {
		both = addHolder(both, o)
	}
	switch {
	case a.Kind == UnknownState || b.Kind == UnknownState:
		unknown := Entry{Kind: UnknownState, Holders: both}
		if a.Version != "" && b.Version != "" {
			unknown.Version = a.Version
			if ident.IsNewer(b.Version, a.Version) {
				unknown.Version = b.Version
			}
		}
		return unknown
	case a.Kind == Tombstone: // both are
		if a.UID == "" {
			b.UID = ""
		}
		return b
	case b.Kind == Value: // both are
		if ident.IsNewer(a.Version, b.Version) {
			return a
		}
		return b
	}
	// a is a value. b is a tombstone of the same object, or of an object that had the name before
	// or afterwards. A tombstone without a UID leaves open which.
	last, isKnown := b.lastHolderVersion()
	switch {
	case b.hasHolder(a.UID):
		b.Holders = both
		return b
	case !isKnown:
		return Entry{Kind: UnknownState, Holders: both}
	case ident.IsNewer(a.Version, last):
		return a
	default:
		return b
	}
}

// addHolder returns holders with o added. It keeps the latest version of each UID.
func addHolder(holders []ident.Version, o ident.Version) []ident.Version {
	i := slices.IndexFunc(holders, o.HasSameUID)
	switch {
	case o.UID() == "" || i >= 0 && (o.ResourceVersion() == "" || o.Before(holders[i])):
		return holders
	case i >= 0:
		holders = slices.Clone(holders)
		holders[i] = o
		return holders
	}
	return withoutOldest(append(slices.Clone(holders), o))
}

// withoutOldest removes the oldest of too many holders: a store that has reached the latest of them cannot show the
// oldest any more. A holder without a known version stays: whether a store can still show it is not known.
func withoutOldest(holders []ident.Version) []ident.Version {
	oldest, knownCount := -1, 0
	for i, o := range holders {
		if o.ResourceVersion() == "" {
			continue
		}
		if knownCount++; oldest < 0 || o.Before(holders[oldest]) {
			oldest = i
		}
	}
	if knownCount <= maxHolders {
		return holders
	}
	return slices.Delete(holders, oldest, oldest+1)
}
